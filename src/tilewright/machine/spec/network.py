"""Networks: inside a cube, between dies and SIPs, and to the host."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tilewright.machine.spec.field import (
    MAX_COUNT,
    BlockSpec,
    BrokenRule,
    BytesPerUs,
    Count,
    Latency,
    Micrometres,
    Size,
    Spec,
    kind_or,
)
from tilewright.units import PS_PER_US, flit_ps

CommandSize = Annotated[Size, Field(le=65_536)]  # every launch sends some to each PE
_LANE_BYTES_PER_US = {  # transfers of a bit each, by line code: 8b/10b, or 128b/130b
    1: Fraction(2_500, 10),
    2: Fraction(5_000, 10),
    3: Fraction(8_000 * 16, 130),
    4: Fraction(16_000 * 16, 130),
    5: Fraction(32_000 * 16, 130),
}


class _RouterSpec(BlockSpec):
    bytes_per_us: BytesPerUs = Field(256_000, description="router to router, each way")
    attach_bytes_per_us: BytesPerUs = Field(
        256_000, description="a PE's DMA or a memory controller to its router, each way"
    )
    router_ps: Latency = Field(1_000, description="latency of one router")
    buffer_bytes: Size = Field(4_096, description="input buffer per virtual channel")


class MeshSpec(_RouterSpec):
    """Routers in rows and columns, with a hole under the memory stack."""

    kind: Literal["mesh"] = Field("mesh", description="or ring or crossbar")
    rows: Count = Field(6, description="rows of routers")
    columns: Count = Field(6, description="columns of routers")
    hole_rows: Annotated[int, Field(ge=0, le=MAX_COUNT)] = Field(
        2, description="rows of the hole, centred"
    )
    hole_columns: Annotated[int, Field(ge=0, le=MAX_COUNT)] = Field(
        2, description="columns of the hole"
    )
    pitch_um: Micrometres = Field(2_800, description="from one router to the next")

    @property
    def pe_routers(self) -> int:
        """Routers that can have a PE: those whose row and column do not meet the hole."""
        return (self.rows - self.hole_rows) * (self.columns - self.hole_columns)

    def broken_rules(self) -> Iterator[BrokenRule]:
        if (self.hole_rows == 0) != (self.hole_columns == 0):
            found = f"a hole of {self.hole_rows} rows and {self.hole_columns} columns"
            fix = "set both to 0 for a mesh without a hole"
            yield BrokenRule("hole_rows", found, "both or neither", fix, ("hole_columns",))
        for hole, side in (("hole_rows", "rows"), ("hole_columns", "columns")):
            size, limit = getattr(self, hole), getattr(self, side)
            if size > 0 and limit - size < 2:
                found = f"a hole of {size} in a mesh of {limit} {side}"
                expected = "routers on each side of the hole"
                fix = f"lower {hole} or raise {side}"
                yield BrokenRule(hole, found, expected, fix, (side,))


class RingSpec(_RouterSpec):
    """Routers in one ring, both ways round; a packet takes the shorter one."""

    kind: Literal["ring"] = Field("ring", description="or mesh or crossbar")
    routers: Count = Field(16, description="routers of the ring")
    pitch_um: Micrometres = Field(2_800, description="from one router to the next")


class CrossbarSpec(_RouterSpec):
    """One switch that joins all: every port has its own output."""

    bytes_per_us: BytesPerUs = Field(
        256_000, description="switch to a die-to-die connection, each way"
    )
    attach_bytes_per_us: BytesPerUs = Field(
        256_000, description="a PE's DMA or a memory controller to the switch, each way"
    )
    router_ps: Latency = Field(1_000, description="latency of the switch")
    kind: Literal["crossbar"] = Field("crossbar", description="or mesh or ring")
    radius_um: Micrometres = Field(6_000, description="wire from a port to the switch")


NocSpec = Annotated[
    Annotated[MeshSpec, Tag("mesh")]
    | Annotated[RingSpec, Tag("ring")]
    | Annotated[CrossbarSpec, Tag("crossbar")],
    Discriminator(kind_or("mesh")),
]


class UcieSpec(BlockSpec):
    """Die-to-die ports: each side of a cube has one, each made of parallel connections.

    A packet is taken in whole at the receiving side: a rate boundary.
    """

    connections: Count = Field(4, description="parallel connections of a port")
    bytes_per_us: BytesPerUs = Field(128_000, description="payload, each way, per connection")
    side_ps: Latency = Field(8_000, description="latency of one side; a crossing has two")
    buffer_bytes: Size = Field(8_192, description="receive buffer per virtual channel")
    length_um: Micrometres = Field(1_000, description="wire between two dies")


class IoChipletSpec(BlockSpec):
    """Joins a SIP's first row of cubes, its host link and its links to other SIPs."""

    noc_ps: Latency = Field(1_000, description="latency of the chiplet's crossbar")
    buffer_bytes: Size = Field(8_192, description="input buffer per virtual channel")
    attach_bytes_per_us: BytesPerUs = Field(128_000, description="IO processor to crossbar")


class PcieSpec(BlockSpec):
    """The host link. Rate = GT/s x lanes x code / 8, of which payload / (payload + overhead)."""

    generation: Annotated[int, Field(ge=1, le=5)] = Field(5, description="PCIe 1 to 5")
    lanes: Literal[1, 2, 4, 8, 16] = Field(16, description="lanes of the link")
    payload_bytes: Size = Field(256, description="most payload of one transaction packet")
    overhead_bytes: Annotated[int, Field(ge=0, le=4096)] = Field(
        24, description="header, sequence number and checksum of one transaction packet"
    )
    endpoint_ps: Latency = Field(100_000, description="latency of the endpoint, each way")
    buffer_bytes: Size = Field(65_536, description="receive buffer per virtual channel")
    length_um: Micrometres = Field(100_000, description="wire from the host")


class HostSpec(Spec):
    """The host processor and its link to each SIP."""

    pcie: PcieSpec = PcieSpec()
    in_flight_bytes: Size = Field(262_144, description="host transfers outstanding per SIP")
    command_bytes: CommandSize = Field(64, description="a command or its completion on the way")
    entry_bytes: CommandSize = Field(
        16, description="what a command names: a page range, ring, argument"
    )


class FabricSpec(BlockSpec):
    """How SIPs are joined: by a switch, or by their own links in a ring, torus or mesh."""

    kind: Literal["switch", "ring", "torus", "mesh"] = Field("switch", description="the shape")
    columns: Count | None = Field(
        None, description="SIPs in a row of a torus or mesh; null: all in one row"
    )
    links: Count = Field(4, description="links of a SIP, dealt over its directions")
    bytes_per_us: BytesPerUs = Field(128_000, description="one link, each way")
    latency_ps: Latency = Field(200_000, description="one link, end to end")
    buffer_bytes: Size = Field(65_536, description="receive buffer per virtual channel")
    switch_ps: Latency = Field(100_000, description="latency of the switch")

    def broken_rules(self) -> Iterator[BrokenRule]:
        if self.columns is not None and self.kind in ("switch", "ring"):
            found = f"{self.columns} with kind {self.kind}"
            fix = "remove it, or set kind to torus or mesh"
            yield BrokenRule("columns", found, "null: the shape has no rows", fix, ("kind",))


def pcie_raw_rate(pcie: PcieSpec) -> Fraction:
    """Bytes per microsecond after line coding, exactly.

    >>> float(round(pcie_raw_rate(PcieSpec()), 1))
    63015.4
    """
    return _LANE_BYTES_PER_US[pcie.generation] * pcie.lanes


def pcie_payload_rate(pcie: PcieSpec) -> Fraction:
    """Bytes of payload per microsecond, exactly: every packet carries its overhead too."""
    framed_bytes = pcie.payload_bytes + pcie.overhead_bytes
    return pcie_raw_rate(pcie) * Fraction(pcie.payload_bytes, framed_bytes)


def pcie_bytes_per_us(pcie: PcieSpec, *, flit_bytes: int) -> int:
    """The integer rate whose flit time is the exact one, rounded up to a picosecond.

    The engine's flit time of a rate ``r`` is ``ceil(flit / r)``; wanted is ``T = ceil(flit / x)``
    for the exact payload rate ``x``. The rates of flit time ``T`` are ``flit/T <= r < flit/(T-1)``.
    ``floor(x)`` lies below that upper end, so it is never early; if it is too slow, the next
    integer is taken when it is still in the range. For narrow links of old generations the range
    holds no integer, and the flit is late by less than ``1/floor(x)`` of its time.
    """
    exact = pcie_payload_rate(pcie)
    wanted_ps = -(-flit_bytes * PS_PER_US // exact)
    below = max(1, exact.numerator // exact.denominator)
    if flit_ps(flit_bytes=flit_bytes, bytes_per_us=below + 1) == wanted_ps:
        is_late = flit_ps(flit_bytes=flit_bytes, bytes_per_us=below) != wanted_ps
        return below + is_late
    return below
