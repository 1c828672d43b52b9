"""One processing element: its units, its memory and what feeds them."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tilewright.machine.spec.field import (
    MAX_COUNT,
    BlockSpec,
    BrokenRule,
    BytesPerUs,
    Count,
    Latency,
    PositiveTime,
    ReservedSize,
    Size,
    Spec,
    is_power_of_two,
    kind_or,
)

Hertz = Annotated[int, Field(ge=1, le=10**12)]
Channels = Annotated[int, Field(ge=1, le=1024)]


class CommandProcessorSpec(Spec):
    """Takes commands one after the other."""

    command_ps: PositiveTime = Field(2_000, description="time of one command")
    buffer_bytes: Size = Field(4_096, description="input buffer per virtual channel")


class DmaSpec(Spec):
    """Channels that send accesses in order; compute and communication travel apart."""

    read_channels: Channels = Field(1, description="channels for reads, each with its own window")
    write_channels: Channels = Field(1, description="channels for writes, each with its own window")
    in_flight_bytes: Size = Field(65_536, description="window of a channel: bytes under way")


class _ArraySpec(BlockSpec):
    rows: Count = Field(16, description="M of one step")
    columns: Count = Field(16, description="N of one step")
    hz: Hertz = Field(10**9, description="clock")
    narrow_speed: Count = Field(2, description="fp8 and int8 are so many times faster")
    wide_slowdown: Count = Field(4, description="f32 is so many times slower")


class DotArraySpec(_ArraySpec):
    """Multiply-adds in blocks of dot products; ``device.gemm`` has the law."""

    kind: Literal["dot_array"] = Field("dot_array", description="or systolic")
    depth: Count = Field(16, description="K of one step")
    fill_cycles: Annotated[int, Field(ge=0, le=MAX_COUNT)] = Field(
        16, description="from the first operand out"
    )


class SystolicSpec(_ArraySpec):
    """Multiply-adds in a grid of cells, one a cell; ``device.gemm`` has the law."""

    kind: Literal["systolic"] = Field("systolic", description="or dot_array")


GemmSpec = Annotated[
    Annotated[DotArraySpec, Tag("dot_array")] | Annotated[SystolicSpec, Tag("systolic")],
    Discriminator(kind_or("dot_array")),
]


class VectorSpec(BlockSpec):
    """Elementwise work, reductions and sorting on lanes of f32."""

    lanes: Count = Field(512, description="f32 elements a cycle")
    hz: Hertz = Field(10**9, description="clock")
    simple_cycles: Count = Field(1, description="add, multiply, compare, select, convert")
    complex_cycles: Count = Field(4, description="exp, log, sin, cos, division, square roots")


class TcmSpec(Spec):
    """The PE's own memory: one read and one write port."""

    capacity_bytes: Size = Field(16 * 2**20, description="in all")
    reserved_bytes: ReservedSize = Field(4 * 2**20, description="of it for the scheduler")
    read_bytes_per_us: BytesPerUs = Field(512_000, description="read port")
    write_bytes_per_us: BytesPerUs = Field(512_000, description="write port")

    def broken_rules(self) -> Iterator[BrokenRule]:
        if self.reserved_bytes >= self.capacity_bytes:
            found = f"{self.reserved_bytes} with capacity_bytes {self.capacity_bytes}"
            expected, fix = "less than capacity_bytes", "reserve less"
            yield BrokenRule("reserved_bytes", found, expected, fix, ("capacity_bytes",))


class RegisterFileSpec(Spec):
    """Holds block values; what does not fit spills to the TCM."""

    capacity_bytes: Size = Field(512 * 2**10, description="in all")


class MmuSpec(Spec):
    """Translates virtual addresses; a walk does not hold up other translations."""

    page_bytes: Size = Field(64 * 2**10, description="one page; the only page size there is")
    tlb_entries: Count = Field(512, description="translations kept, least recently used goes")
    hit_ps: Latency = Field(0, description="of a translation that is kept")
    walk_ps: Latency = Field(50_000, description="of one that is not")

    def broken_rules(self) -> Iterator[BrokenRule]:
        if not is_power_of_two(self.page_bytes):
            fix = "an address has whole bits for the place in a page; round it"
            yield BrokenRule("page_bytes", str(self.page_bytes), "a power of two", fix)


class PeSpec(Spec):
    """One PE."""

    cpu: CommandProcessorSpec = CommandProcessorSpec(command_ps=2_000)
    scheduler: CommandProcessorSpec = CommandProcessorSpec(command_ps=1_000)
    queue_commands: Count = Field(64, description="commands that a PE may have in flight")
    dma: DmaSpec = DmaSpec()
    gemm: GemmSpec = DotArraySpec()
    vector: VectorSpec = VectorSpec()
    tcm: TcmSpec = TcmSpec()
    registers: RegisterFileSpec = RegisterFileSpec()
    mmu: MmuSpec = MmuSpec()
