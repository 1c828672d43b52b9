"""Blocks as a user would write them, named by ``impl`` in the tests of the device."""

from dataclasses import dataclass

from tilewright.engine import PacketView
from tilewright.machine.spec import BlockSpec, GemmSpec, SramSpec, VectorSpec


@dataclass
class ThreeOpGemm:
    """A law of its own that reads its spec and a parameter of the file."""

    name: str
    spec: GemmSpec
    start_cycles: int

    def cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        slowdown = self.spec.wide_slowdown if dtype == "f64" else 1
        return self.start_cycles + slowdown * (m + n + k)


@dataclass
class OneLane:
    name: str
    spec: VectorSpec

    def cycles(self, op: str, elements: int, dtype: str) -> int:
        return elements * (len(op) + len(dtype))


@dataclass
class SlowEverySecond:
    """A memory that keeps every second access twice as long."""

    name: str
    spec: SramSpec
    latency_ps: int = 0
    num_served: int = 0

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        assert packet.num_bytes > 0 <= now_ps
        self.num_served += 1
        slowdown = 1 + (self.num_served % 2 == 0)
        return self.spec.access_ps * slowdown, self.latency_ps


class NeverBuilt:
    def __init__(self, name: str, spec: BlockSpec) -> None:
        raise LookupError(f"no licence for {name} {type(spec).__name__}")

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        return packet.num_bytes, now_ps
