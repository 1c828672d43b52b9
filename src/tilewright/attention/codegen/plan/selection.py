"""What each way to select the pages of a row costs: memory, spilled registers, queues, launches."""

from dataclasses import dataclass

from tilewright.attention.codegen.plan.target import Merge, Selection, Target
from tilewright.attention.codegen.plan.traffic import select_page_bytes
from tilewright.attention.graph import Node
from tilewright.attention.ops import selection as ops
from tilewright.units import PS_PER_US

SCORE_BYTES = 4
RANK_BYTES = 8
LIVING_BLOCKS = 3  # of a row's scores, while they are sorted
SORT_PASSES = 20  # commands that read the scores of a row: they are made keys, sorted, marked


@dataclass(frozen=True, slots=True)
class SelectionCost:
    """``num_bytes`` are those of a row in memories; ``time_ps`` is that of its busiest worker.

    ``why_not`` says why it is impossible, ``not_fused`` why it has to be a kernel of its own; both
    are empty if that is not so.
    """

    selection: Selection
    reason: str
    num_bytes: int
    time_ps: int
    why_not: str = ""
    not_fused: str = ""


def turns_of(target: Target) -> int:
    """Count the programs of the busiest worker: more rows than workers take turns.

    >>> turns_of(Target(rows=8, pages=1, workers=256)), turns_of(Target(rows=300, pages=1))
    (1, 2)
    """
    return -(-target.rows * target.members // target.workers)


def memory_ps(target: Target, num_bytes: int) -> int:
    return num_bytes * PS_PER_US // target.memory_bytes_per_us


def selection_costs(
    target: Target, chosen: Node, *, kept: int, segment: int, apart: str
) -> tuple[SelectionCost, ...]:
    """Return the costs of all ways, possible or not."""
    not_shared = apart or _not_shared(target, chosen)
    too_small = f"segments of {segment} pages, of which {kept} are kept" if segment < kept else ""
    return (
        _block(target, not_shared),
        _segments(target, kept, not_shared or too_small),
        _apart(target, Selection.DIGITS, "", not_shared or "digits are looked for in memory"),
    )


def _not_shared(target: Target, chosen: Node) -> str:
    """Say why the programs of a row cannot choose among their pages; return "" if they can."""
    by_count = isinstance(chosen.op, ops.TopK | ops.ApproxTopK | ops.Threshold)
    if not by_count or chosen.type.shape[1] != 1:
        return f"{chosen.op.name} is no choice by count for all query heads together"
    if target.members > 1 and Merge.IPCQ not in target.merges:
        return f"{target.members} members choose together, and have no queues"
    return ""


def _block(target: Target, not_shared: str) -> SelectionCost:
    need = LIVING_BLOCKS * SCORE_BYTES * target.pages * target.members
    spilled = max(0, need - target.register_bytes)
    spill_ps = spilled * SORT_PASSES * PS_PER_US // target.spill_bytes_per_us
    sent = SCORE_BYTES * target.pages * (target.members - 1)  # all meet at one member
    reason = f"{need} bytes of scores stay on the chip"
    why_not = not_shared
    if not why_not and need > target.on_chip_bytes:
        why_not = f"{need} bytes of scores, {target.on_chip_bytes} on the chip"
    num_bytes = select_page_bytes(Selection.BLOCK, is_fused=True) * target.pages
    time_ps = spill_ps + memory_ps(target, num_bytes + sent) + _messages_ps(target)
    return SelectionCost(Selection.BLOCK, reason, num_bytes * target.members, time_ps, why_not)


def _segments(target: Target, kept: int, not_fused: str) -> SelectionCost:
    why_not = "" if kept else "nothing bounds how many pages a row may choose"
    if kept > target.pages:
        why_not = f"{kept} candidates would be kept of {target.pages} pages"
    if not_fused:
        return _apart(target, Selection.SEGMENTS, why_not, not_fused, kept)
    num_bytes = select_page_bytes(Selection.SEGMENTS, is_fused=True) * target.pages
    sent = RANK_BYTES * kept * _levels(target)
    time_ps = memory_ps(target, num_bytes + sent) + _messages_ps(target)
    return SelectionCost(
        Selection.SEGMENTS, _segment_reason(kept), num_bytes * target.members, time_ps, why_not
    )


def _segment_reason(kept: int) -> str:
    return f"the best {kept} of each segment stay on the chip"


def _apart(
    target: Target, selection: Selection, why_not: str, not_fused: str, kept: int = 0
) -> SelectionCost:
    """Return the cost of a kernel of its own, where one worker has the scores of all members."""
    page_bytes = SCORE_BYTES + select_page_bytes(selection, is_fused=False)
    num_bytes = page_bytes * target.pages * target.members
    reason = _segment_reason(kept) if kept else "scores are read from memory digit by digit"
    time_ps = memory_ps(target, num_bytes) + target.launch_ps
    return SelectionCost(selection, reason, num_bytes, time_ps, why_not, not_fused)


def _levels(target: Target) -> int:
    return (target.members - 1).bit_length()


def _messages_ps(target: Target) -> int:
    """Return the time of what goes up the tree of members, and down again."""
    return 2 * _levels(target) * target.message_ps
