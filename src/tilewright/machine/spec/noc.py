"""The network inside a cube, and the blocks that sit on it beside PEs and memory."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tilewright.machine.spec.block import BlockSpec
from tilewright.machine.spec.kind import kind_or
from tilewright.machine.spec.quantity import (
    MAX_COUNT,
    BytesPerUs,
    Count,
    Latency,
    Micrometres,
    Size,
)
from tilewright.machine.spec.rule import BrokenRule


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
