"""What the stages of a decode step move through memory, told before they run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tilewright.attention.codegen.plan.slice_loads import window_of
from tilewright.attention.codegen.plan.target import Selection
from tilewright.attention.graph import FORMAT, DType, FlowKind, Geometry, Leading, Node
from tilewright.attention.ops import leaf


class Stage(StrEnum):
    """What a kernel, or a function of one, does for a step."""

    COMPLETION = "page completion"
    SCORING = "scoring"
    SELECTION = "selection"
    ATTENTION = "attention"
    MERGE = "merge"


TABLE_BYTES = 8  # of a block number
MARK_BYTES = 1
NUMBER_BYTES = 4  # of float32 and int32, which computed values are
BURST_BYTES = 64  # that a memory moves at least
LIST_BYTES = 4  # of an entry of a list
DIGIT_PASSES = 11  # over scores in memory: two counts, eight digits, and who is in


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one stage: for a row, for each of its pages, for each page that attention reads.

    ``head_bytes`` are for each of its pages and each KV head of its request.
    """

    stage: Stage
    row_bytes: int = 0
    page_bytes: int = 0
    listed_bytes: int = 0
    head_bytes: int = 0

    def of(self, *, pages: int, listed: int, heads: int = 1) -> int:
        """Count the bytes of a row with so many pages, in a request of so many KV heads.

        >>> Traffic(Stage.SELECTION, 8, 1, 4).of(pages=100, listed=10)
        148
        """
        page_bytes = self.page_bytes + heads * self.head_bytes
        return self.row_bytes + pages * page_bytes + listed * self.listed_bytes


def page_traffic(
    seen: Iterable[Node],
    stored: Iterable[Node],
    rounds: Mapping[Node, int],
    index: int,
    *,
    has_table: bool,
) -> Traffic:
    """Count the work of a round on each page: ``seen`` are the values that its kernel needs."""
    num_bytes = {True: TABLE_BYTES if has_table else 0, False: 0}  # per page, and per row
    for node in dict.fromkeys(seen):
        window = window_of(node)
        if window is not None:
            is_kept = isinstance(window.source.op, leaf.FieldRead | leaf.StateRead)
            per_page = is_kept and node.type.leading is Leading.PAGES
            num_bytes[per_page] += node.type.num_elements * window.source.type.dtype.bits // 8
        elif node.inputs and (rounds[node] < index or node.op.is_row_op):
            is_kept = node.type.format is not FORMAT.BATCHED
            num_bytes[is_kept and node.type.leading is Leading.PAGES] += _kept_bytes(node)
    for node in stored:
        num_bytes[node.type.format is not FORMAT.BATCHED] += _kept_bytes(node)
    return Traffic(Stage.SCORING, num_bytes[False], num_bytes[True])


def _kept_bytes(node: Node) -> int:
    """Count the bytes of a value in scratch memory."""
    size = MARK_BYTES if node.type.dtype is DType.BOOL else NUMBER_BYTES
    return node.type.num_elements * size


def column_bytes(columns: int, size: int, *, is_written: bool) -> int:
    """Count the bytes of one element of each column of a page, a program for each.

    Memory moves bursts: who reads one column of several reads its neighbours, too, and who writes
    one writes a burst for each element.
    """
    if columns > 1 and is_written:
        return columns * BURST_BYTES
    return columns * min(columns * size, BURST_BYTES)


def score_passes(selection: Selection, *, is_fused: bool) -> int:
    """Count how often a selection reads or writes the score of a page.

    Fused with scoring, a selection in two levels leaves scores in memory and reads them once;
    apart, somebody else has left them there, and it reads them twice.
    """
    passes = {Selection.BLOCK: 0 if is_fused else 1, Selection.SEGMENTS: 2}
    return passes.get(selection, DIGIT_PASSES)


def select_page_bytes(selection: Selection, *, is_fused: bool) -> int:
    """Count a page of a selection: its mark, and its score."""
    return MARK_BYTES + NUMBER_BYTES * score_passes(selection, is_fused=is_fused)


def select_traffic(selection: Selection, columns: int) -> Traffic:
    """Count a selection for each column of scores that an earlier kernel left."""
    page_bytes = column_bytes(columns, MARK_BYTES, is_written=True)
    each = column_bytes(columns, NUMBER_BYTES, is_written=False)
    page_bytes += score_passes(selection, is_fused=False) * each
    return Traffic(Stage.SELECTION, page_bytes=page_bytes)


def pools_of(sizes: Geometry) -> dict[str, int]:
    """Return the pools of keys and values with their widths; a latent is both."""
    if sizes.kind is FlowKind.MLA:
        return {"latent_pool": sizes.key_dim}
    return {"k_pool": sizes.key_dim, "v_pool": sizes.value_dim}


def attend_traffic(sizes: Geometry, *, is_listed: bool, loads_latents_once: bool) -> Traffic:
    """Count attention with its query and its output."""
    pools = pools_of(sizes)
    width = sum(pools.values())
    if len(pools) == 1 and not loads_latents_once:
        width += sizes.value_dim
    token_bytes = width * sizes.kv_dtype.bits // 8
    query = sizes.query_heads * sizes.key_dim * sizes.query_dtype.bits // 8
    output = sizes.query_heads * (sizes.value_dim + 1) * NUMBER_BYTES
    entry = TABLE_BYTES + (NUMBER_BYTES if is_listed else 0)
    listed = sizes.page_size * token_bytes + entry
    return Traffic(Stage.ATTENTION, row_bytes=query + output, listed_bytes=listed)
