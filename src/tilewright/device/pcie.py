"""What PCIe packets add to a copy. The rates of a link are in ``machine.spec``."""

from dataclasses import dataclass

from tilewright.device.size import ceil_div, check_size
from tilewright.machine.spec import PcieSpec
from tilewright.machine.spec.network import pcie_raw_rate
from tilewright.units import flit_ps


@dataclass(frozen=True, slots=True)
class PcieFraming:
    """Data goes in packets of at most ``payload_bytes``, each with ``overhead_bytes`` around it:

        bytes on the wire = n + ceil(n / payload) x overhead
        time on the wire  = bytes on the wire / raw rate, rounded up once

    So full packets go at raw rate x payload / (payload + overhead), and a short last one still pays
    its whole overhead.
    """

    name: str  # a path, "sip0.io0.pcie_ep"
    spec: PcieSpec

    def wire_bytes(self, num_bytes: int) -> int:
        """Bytes that the link carries for so many bytes of data.

        >>> PcieFraming("sip0.io0.pcie_ep", PcieSpec()).wire_bytes(257)
        305
        """
        check_size(self.name, "num_bytes", num_bytes)
        num_packets = ceil_div(num_bytes, self.spec.payload_bytes)
        return num_bytes + num_packets * self.spec.overhead_bytes

    def wire_ps(self, num_bytes: int) -> int:
        """Time that the link carries so many bytes of data, each way; a lower bound of any copy."""
        raw = pcie_raw_rate(self.spec)
        # both times the denominator: the one rounding place takes whole rates only
        framed_bytes = self.wire_bytes(num_bytes) * raw.denominator
        return flit_ps(flit_bytes=framed_bytes, bytes_per_us=raw.numerator)
