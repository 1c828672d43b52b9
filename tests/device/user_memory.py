"""A link and a memory as a user would write them, named by ``impl`` in the tests of the device."""

from dataclasses import dataclass

from tilewright.engine import PacketView
from tilewright.machine.spec import BlockSpec, HbmSpec

__all__ = ("LongWay", "OneByteAPicosecond")


@dataclass
class LongWay:
    """A link at its rate whose packets arrive ``extra_ps`` later than any of ours would."""

    name: str
    spec: BlockSpec
    extra_ps: int
    flit_ps: int = 250

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        assert now_ps >= 0
        return packet.num_flits * self.flit_ps, self.extra_ps


@dataclass
class OneByteAPicosecond:
    """A memory without banks: a fixed time and one more picosecond for each byte."""

    name: str
    spec: HbmSpec
    access_ps: int = 5_000

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        assert now_ps >= 0
        return packet.num_bytes, self.access_ps
