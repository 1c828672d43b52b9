"""The network inside a cube, and the blocks that sit on it beside PEs and memory."""

from typing import Annotated, Literal

from pydantic import Field

from tilewright.machine.spec.block import BlockSpec
from tilewright.machine.spec.quantity import BytesPerUs, Count, Latency, Micrometres, Size

__all__ = ("CrossbarSpec", "MeshSpec", "NocSpec", "RingSpec")


class _RouterSpec(BlockSpec):
    bytes_per_us: BytesPerUs = Field(256_000, description="router to router, each way")
    attach_bytes_per_us: BytesPerUs = Field(
        256_000, description="a PE's DMA or a memory controller to its router, each way"
    )
    router_ps: Latency = Field(1_000, description="latency of one router")
    buffer_bytes: Size = Field(4_096, description="input buffer per virtual channel")


class MeshSpec(_RouterSpec):
    """Routers in rows and columns, with a hole under the memory stack."""

    kind: Literal["mesh"] = "mesh"
    rows: Count = Field(6, description="rows of routers")
    columns: Count = Field(6, description="columns of routers")
    hole_rows: Annotated[int, Field(ge=0)] = Field(2, description="rows of the hole, centred")
    hole_columns: Annotated[int, Field(ge=0)] = Field(2, description="columns of the hole")
    pitch_um: Micrometres = Field(2_800, description="from one router to the next")


class RingSpec(_RouterSpec):
    """Routers in one ring, both ways round; a packet takes the shorter one."""

    kind: Literal["ring"] = "ring"
    routers: Count = Field(16, description="routers of the ring")
    pitch_um: Micrometres = Field(2_800, description="from one router to the next")


class CrossbarSpec(_RouterSpec):
    """One switch that joins all: every port has its own output."""

    kind: Literal["crossbar"] = "crossbar"
    radius_um: Micrometres = Field(6_000, description="wire from a port to the switch")


NocSpec = Annotated[MeshSpec | RingSpec | CrossbarSpec, Field(discriminator="kind")]
