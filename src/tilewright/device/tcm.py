"""The memory of a PE: two ports, and the space that programs may use."""

from dataclasses import dataclass

from tilewright.engine import ServerSpec
from tilewright.machine.spec import TcmSpec
from tilewright.units import flit_ps


@dataclass(frozen=True, slots=True)
class Tcm:
    """A read and a write port, each a server of its own; an access holds its port for

        ceil(bytes / rate of the port)

    rounded up to a picosecond once per access. Reads wait for reads and writes for writes, never
    for each other. Which bytes are free is the allocator's business.

    >>> tcm = Tcm("sip0.cube0.pe0.tcm", TcmSpec())
    >>> tcm.read_ps(65_536), tcm.usable_bytes == 12 * 2**20
    (128000, True)
    """

    name: str  # a path, "sip0.cube3.pe5.tcm"
    spec: TcmSpec

    @property
    def usable_bytes(self) -> int:
        """What the scheduler's reserve leaves to programs; at least a byte, says the spec."""
        return self.spec.capacity_bytes - self.spec.reserved_bytes

    def read_ps(self, num_bytes: int) -> int:
        """Time that a read of so many bytes holds the read port."""
        # an access is one flit of its own size, and so is rounded once
        return flit_ps(flit_bytes=num_bytes, bytes_per_us=self.spec.read_bytes_per_us)

    def write_ps(self, num_bytes: int) -> int:
        """Time that a write of so many bytes holds the write port."""
        return flit_ps(flit_bytes=num_bytes, bytes_per_us=self.spec.write_bytes_per_us)

    def ports(self) -> tuple[ServerSpec, ServerSpec]:
        """The read and the write port as servers.

        Commands of the PE hold them; packets of a DMA cross them, each as a whole, since the links
        in front of them are slower.
        """
        spec = self.spec
        return (
            ServerSpec(f"{self.name}.read", spec.read_bytes_per_us, reassemble=True),
            ServerSpec(f"{self.name}.write", spec.write_bytes_per_us, reassemble=True),
        )

    def turn(self) -> ServerSpec:
        """Where a request of the PE's own DMA, or the answer to it, passes beside the ports."""
        return ServerSpec(f"{self.name}.turn", self.spec.read_bytes_per_us)
