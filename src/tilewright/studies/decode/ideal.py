"""What a decode step must move and compute at least: bytes by stage, and the least time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.attention.backends.machine import RowLayout, block_bytes
from tilewright.attention.codegen import Stage
from tilewright.attention.graph import Graph, Side
from tilewright.attention.ops.leaf import FieldRead
from tilewright.machine.build import Machine
from tilewright.programs.bound import Bound, Path, Work, bound_of
from tilewright.studies.decode.data import Int64s

TABLE_BYTES = 8  # of an entry of the page table
RESULT_BYTES = 4  # outputs are float32
_PEAK_NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}


@dataclass(frozen=True, slots=True)
class IdealStep:
    """Bytes of each stage over all rows; the busiest PE decides the least time."""

    num_bytes: Mapping[Stage, int]
    bound: Bound

    @property
    def total_bytes(self) -> int:
        return sum(self.num_bytes.values())


@dataclass(frozen=True, slots=True)
class _RowBytes:
    """Of one row: what each page costs in a stage, and what the row costs once."""

    graph: Graph
    is_dense: bool

    @property
    def input_bytes(self) -> int:
        return sum(-(-prod(kind.shape) * kind.dtype.bits // 8) for _, kind in self.graph.inputs)

    @property
    def output_bytes(self) -> int:
        geometry = self.graph.geometry
        return RESULT_BYTES * geometry.query_heads * (geometry.value_dim + 1)

    @property
    def token_bytes(self) -> int:
        geometry = self.graph.geometry
        return sum(
            -(-width * geometry.kv_dtype.bits // 8)
            for _, width in geometry.reserved_fields.values()
        )

    @property
    def scored_bytes(self) -> int:
        """Of one page: the fields that the indexer reads, and its entry of the table."""
        if self.is_dense:
            return 0
        names = _fields_read(self.graph, Side.INDEXER)
        sizes = block_bytes(self.graph)
        return sum(sizes[name] for name in names) + (TABLE_BYTES if names else 0)

    @property
    def completed_bytes(self) -> int:
        """Of one page that the new token completes."""
        if self.is_dense or not self.graph.field_writes:
            return 0
        sizes = block_bytes(self.graph)
        names = {write.target for write in self.graph.field_writes}
        return sum(sizes[name] for name in names | _fields_read(self.graph, Side.CACHE))


def ideal_step(
    machine: Machine,
    graph: Graph,
    layout: RowLayout,
    num_tokens: Sequence[int],
    pages: Sequence[Int64s],
    *,
    is_dense: bool,
) -> IdealStep:
    """``pages`` are those that each row reads."""
    row, heads = _RowBytes(graph, is_dense), layout.num_kv_heads
    size = graph.geometry.page_size
    num_bytes = dict.fromkeys(Stage, 0)
    of_pe = np.zeros(len(layout.pes), dtype=np.int64)
    tokens_of_pe = np.zeros(len(layout.pes), dtype=np.int64)
    for index, read in enumerate(pages):
        count = num_tokens[index // heads]
        completed = row.completed_bytes if count % size == 0 else 0
        num_bytes[Stage.COMPLETION] += 2 * row.token_bytes + completed
        full = np.arange(count // size, dtype=np.int64)
        scores = bool(row.scored_bytes)
        if scores:
            num_bytes[Stage.SCORING] += len(full) * row.scored_bytes + row.input_bytes
        tokens = np.minimum(count - read * size, size)
        attended = tokens * row.token_bytes + TABLE_BYTES
        num_bytes[Stage.ATTENTION] += int(attended.sum()) + row.input_bytes + row.output_bytes
        first = index * layout.members
        if scores:
            _add(of_pe, layout, first, full, np.full(len(full), row.scored_bytes))
        _add(of_pe, layout, first, read, attended)
        _add(tokens_of_pe, layout, first, read, tokens)
    work = _work(graph, of_pe, int(tokens_of_pe.max()))
    return IdealStep(num_bytes, bound_of(machine, work, _path(layout, of_pe, pages)))


def _add(of_pe: Int64s, layout: RowLayout, first: int, pages: Int64s, amounts: Int64s) -> None:
    """Give each page's amount to the PE that has it."""
    member, _ = layout.places_of(pages)
    np.add.at(of_pe, (first + member) % len(layout.pes), amounts)


def _work(graph: Graph, of_pe: Int64s, num_tokens: int) -> Work:
    """Return the work of the busiest PE."""
    geometry = graph.geometry
    flop = 2 * num_tokens * geometry.query_heads * (geometry.key_dim + geometry.value_dim)
    peak = _PEAK_NAMES.get(geometry.kv_dtype.value)
    return Work(num_pes=1, read_bytes=int(of_pe.max()), flop={} if peak is None else {peak: flop})


def _path(layout: RowLayout, of_pe: Int64s, pages: Sequence[Int64s]) -> Path:
    """Return what one launch of all PEs that read pages cannot avoid.

    A page is read at an address that the table has. Of a row that is divided, the first member
    stores what all that read pages of it have found; it is enough to look at the first row.
    """
    members, _ = layout.places_of(pages[0])
    last = int(members.max(initial=0))
    sender, receiver = layout.pe_of(0, last), layout.pe_of(0)
    return Path(
        pes=tuple(layout.pes[index] for index in np.flatnonzero(of_pe)),
        loads=2,
        opens=False,  # the page of the new token is written before pages are read
        all_store=layout.members == 1,
        messages=() if sender == receiver else ((sender, receiver),),
    )


def _fields_read(graph: Graph, side: Side) -> set[str]:
    return {node.op.variable for node in graph.nodes(side) if isinstance(node.op, FieldRead)}
