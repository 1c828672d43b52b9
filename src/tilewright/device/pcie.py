"""What is left of a link's speed for data: lanes, line code and PCIe's packet framing."""

from dataclasses import dataclass
from fractions import Fraction

from tilewright.device.size import ceil_div
from tilewright.errors import UnitError
from tilewright.machine.spec import PcieSpec

__all__ = ("PcieFraming", "lane_rate")

# transfers a microsecond on each lane, and the share of them that carries data, by generation
_LANES = {
    1: (2_500, Fraction(8, 10)),
    2: (5_000, Fraction(8, 10)),
    3: (8_000, Fraction(128, 130)),
    4: (16_000, Fraction(128, 130)),
    5: (32_000, Fraction(128, 130)),
}
_BITS_PER_BYTE = 8


def lane_rate(transfers_per_us: int, lanes: int, code: Fraction = Fraction(1)) -> Fraction:
    """Bytes per microsecond, each way, of parallel lanes that move one bit a transfer.

    A UCIe module of 16 lanes at 32 GT/s, which has no line code:

    >>> print(lane_rate(32_000, 16))
    64000
    """
    return transfers_per_us * lanes * code / _BITS_PER_BYTE


@dataclass(frozen=True, slots=True)
class PcieFraming:
    """Data goes in packets of at most ``payload_bytes``, each with ``overhead_bytes`` around it:

        bytes on the wire = n + ceil(n / payload) x overhead
        payload rate      = raw rate x payload / (payload + overhead)

    The rate is that of full packets; a short last one pays its whole overhead. Rates are exact
    fractions of bytes per microsecond, each way.
    """

    spec: PcieSpec

    @property
    def raw_rate(self) -> Fraction:
        transfers_per_us, code = _LANES[self.spec.generation]
        return lane_rate(transfers_per_us, self.spec.lanes, code)

    @property
    def payload_rate(self) -> Fraction:
        payload = self.spec.payload_bytes
        return self.raw_rate * payload / (payload + self.spec.overhead_bytes)

    def wire_bytes(self, num_bytes: int) -> int:
        """Bytes that the link carries for so many bytes of data.

        >>> PcieFraming(PcieSpec()).wire_bytes(257)
        305
        """
        if type(num_bytes) is not int or num_bytes < 0:
            found = f"num_bytes = {num_bytes!r}"
            raise UnitError("pcie", found, "an int of at least 0", "correct the size")
        packets = ceil_div(num_bytes, self.spec.payload_bytes)
        return num_bytes + packets * self.spec.overhead_bytes
