"""Cutting a flow into kernels: where an op needs all pages of its row, and where fusing costs more.

Bytes moved, launches, space on the chip and workers decide which stages share a kernel.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tilewright.attention.codegen.plan.target import (
    Cut,
    Decision,
    Fusion,
    Merge,
    Selection,
    Target,
)
from tilewright.attention.codegen.plan.traffic import (
    LIST_BYTES,
    MARK_BYTES,
    NUMBER_BYTES,
    select_page_bytes,
)
from tilewright.attention.graph import Graph, Leading, Node, Side, StateWrite
from tilewright.attention.ops import selection as ops
from tilewright.units import PS_PER_US

RANK_BYTES = 8
LIVING_BLOCKS = 3  # of a row's scores, while they are sorted
SORT_PASSES = 20  # commands that read the scores of a row: they are made keys, sorted, marked

WITHOUT = "left out by the cut that was given"


def round_of(graph: Graph) -> dict[Node, int]:
    """Return the round in which each node of the indexer side is computed.

    The result of a row op is there in the round after its own.
    """
    rounds: dict[Node, int] = {}
    for node in graph.nodes(Side.INDEXER):
        known = (rounds[item] + item.op.is_row_op for item in node.inputs)
        rounds[node] = max(known, default=0)
    return rounds


def is_repeated(node: Node) -> bool:
    """Tell whether a later round computes the node again: leaves, and work per row."""
    return not node.inputs or node.type.leading is not Leading.PAGES


def page_roots(rounds: Mapping[Node, int], wanted: Iterable[Node], index: int) -> list[Node]:
    """Return what the page kernel of a round must leave in scratch memory, in a fixed order.

    ``wanted`` are the values that kernels after the last round read.
    """
    found: dict[Node, None] = {}
    for node, at in rounds.items():
        for item in node.inputs:
            if rounds[item] == index and not item.op.is_row_op:
                later = at > index and not is_repeated(item)
                if later or node.op.is_row_op:
                    found[item] = None
    for node in wanted:
        if rounds[node] == index and not node.op.is_row_op:
            found[node] = None
    return list(found)


def writes_by_round(graph: Graph, rounds: Mapping[Node, int]) -> dict[int, list[StateWrite]]:
    """Find the round whose page kernel can write each state: the first that has its value."""
    found: dict[int, list[StateWrite]] = {}
    for write in graph.state_writes:
        found.setdefault(rounds[write.value] + write.value.op.is_row_op, []).append(write)
    return found


def plan_cut(
    target: Target | None,
    chosen: Node,
    rounds: Mapping[Node, int],
    *,
    kept: int,
    segment: int,
    apart: str = "",
    wanted: Cut | None = None,
) -> tuple[Cut, tuple[Decision, ...]]:
    """Plan what costs least for a row, as far as a cut that is given allows, with all reasons.

    ``kept`` candidates of a segment can be enough (0: nobody knows how many), and a kernel that
    scores has segments of so many pages; ``apart`` says why a selection must be a kernel of its
    own, if it must.
    """
    base = wanted or Cut()
    if target is None:
        reason = "programs have tiles and parts, none a whole row"
        way, why = Selection.DIGITS, "nothing bounds how many pages a row may choose"
        if kept:
            way = Selection.SEGMENTS
            why = f"scores are read twice: the best {kept} of each segment, then who is among them"
        found = [Decision(way, True, why)]
        found += [Decision(item, is_accepted=False, reason=reason) for item in Fusion]
    else:
        costs = selection_costs(target, chosen, kept=kept, segment=segment, apart=apart)
        possible = [cost for cost in costs if not cost.why_not]
        named = [cost for cost in possible if cost.selection is base.selection]
        taken = min(named or possible, key=lambda cost: cost.time_ps)
        found = [_selection(target, cost, taken, is_named=bool(named)) for cost in costs]
        at, apart = rounds[chosen], taken.not_fused
        row_ops = [node for node, other in rounds.items() if other == at and node.op.is_row_op]
        roots = page_roots(rounds, (chosen,), at)
        if not apart and (row_ops != [chosen] or roots != [chosen.inputs[0]]):
            apart = "other values of the same pages go through memory"
        allowed = frozenset(Fusion) if wanted is None else wanted.fusions
        found += _fusions(target, taken, apart, allowed)
    accepted = [item.choice for item in found if item.is_accepted]
    fused = frozenset(item for item in accepted if isinstance(item, Fusion))
    (selected,) = (item for item in accepted if isinstance(item, Selection))
    return replace(base, fusions=fused, selection=selected), tuple(found)


def _selection(
    target: Target, cost: "SelectionCost", taken: "SelectionCost", *, is_named: bool
) -> Decision:
    """Decide about one way: its bytes, of a row and all members, beside those of the taken one."""
    turns = turns_of(target)
    reason, saved_ps = f"{cost.reason}: {turns * cost.time_ps} ps a worker", 0
    if cost is taken:
        reason += ", asked for by name" if is_named else ", the least"
    elif cost.why_not:
        reason = cost.why_not
    else:
        beside = f"{taken.selection} is asked for by name"
        reason += f", {beside}" if is_named else f", more than {taken.selection}"
        saved_ps = turns * (taken.time_ps - cost.time_ps)
    numbers = cost.num_bytes, taken.num_bytes, saved_ps
    return Decision(cost.selection, cost is taken, reason, *numbers)


def _fusions(
    target: Target, taken: "SelectionCost", not_scored: str, wanted: frozenset[Fusion]
) -> list[Decision]:
    """Decide about all fusions, those that are wanted and others.

    Scores stay in the kernel, or are written by one and read by the next. Members select and list,
    or the home of a row selects for all, and they wait. One program reads its own list.
    """
    pages, idle = target.pages * target.members, target.members - 1
    inside = select_page_bytes(taken.selection, is_fused=True) * pages
    each = select_page_bytes(taken.selection, is_fused=False)
    outside = (NUMBER_BYTES + each) * pages
    scored = not_scored or f"{taken.reason}, in the kernel that scores"
    listed = taken.not_fused or "one program chooses among all its pages, and lists them"
    if idle and not taken.not_fused:
        listed += f"; apart, {idle} of the {target.members} workers of a row would wait"
    marks = 2 * MARK_BYTES * pages  # written by the one, read by the other
    entries = LIST_BYTES * pages

    waiting = each * target.pages * idle
    alone = "one program reads its own list"
    found: list[Decision] = []
    for choice, why_not, reason, taking, leaving, saved in (
        (Fusion.SCORE_SELECT, not_scored, scored, inside, outside, outside - inside),
        (Fusion.SELECT_LIST, taken.not_fused, listed, marks, marks, waiting),
        (Fusion.LIST_ATTEND, "", alone, entries, entries, 0),
    ):
        # bytes that members need not move, turn by turn, and a launch
        saved_ps = turns_of(target) * memory_ps(target, saved // target.members) + target.launch_ps
        is_wanted = choice in wanted
        why = reason if why_not or is_wanted else WITHOUT
        found.append(Decision(choice, not why_not and is_wanted, why, taking, leaving, saved_ps))
    return found


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
    pages, members = target.pages, target.members
    digits, block = "scores are read from memory digit by digit", NUMBER_BYTES * pages
    not_shared = apart or _not_shared(target, chosen)
    need = LIVING_BLOCKS * block * members
    spilled = max(0, need - target.register_bytes)
    spill_ps = spilled * SORT_PASSES * PS_PER_US // target.spill_bytes_per_us
    sent = block * (members - 1)  # all meet at one member
    why_not, reason = not_shared, f"{need} bytes of scores stay on the chip"
    if not why_not and need > target.on_chip_bytes:
        why_not = f"{need} bytes of scores, {target.on_chip_bytes} on the chip"
    by_block = _shared(target, Selection.BLOCK, reason, sent, why_not, spill_ps)
    too_small = f"segments of {segment} pages, of which {kept} are kept" if segment < kept else ""
    not_fused = not_shared or too_small
    reason = f"the best {kept} of each segment stay on the chip"
    why_not = "" if kept else "nothing bounds how many pages a row may choose"
    if kept > pages:
        why_not = f"{kept} candidates would be kept of {pages} pages"
    if not_fused:
        reason = reason if kept else digits
        by_segments = _apart(target, Selection.SEGMENTS, reason, not_fused, why_not)
    else:
        sent = RANK_BYTES * kept * (members - 1).bit_length()
        by_segments = _shared(target, Selection.SEGMENTS, reason, sent, why_not)
    not_fused = not_shared or "digits are looked for in memory"
    return by_block, by_segments, _apart(target, Selection.DIGITS, digits, not_fused)


def _not_shared(target: Target, chosen: Node) -> str:
    """Say why the programs of a row cannot choose among their pages; return "" if they can."""
    by_count = isinstance(chosen.op, ops.TopK | ops.ApproxTopK | ops.Threshold)
    if not by_count or chosen.type.shape[1] != 1:
        return f"{chosen.op.name} is no choice by count for all query heads together"
    if target.members > 1 and Merge.IPCQ not in target.merges:
        return f"{target.members} members choose together, and have no queues"
    return ""


def _shared(
    target: Target, selection: Selection, reason: str, sent: int, why_not: str, spill_ps: int = 0
) -> SelectionCost:
    """Return the cost of members that choose together: messages go up their tree, and down."""
    num_bytes = select_page_bytes(selection, is_fused=True) * target.pages
    messages_ps = 2 * (target.members - 1).bit_length() * target.message_ps
    time_ps = spill_ps + memory_ps(target, num_bytes + sent) + messages_ps
    return SelectionCost(selection, reason, num_bytes * target.members, time_ps, why_not)


def _apart(
    target: Target, selection: Selection, reason: str, not_fused: str, why_not: str = ""
) -> SelectionCost:
    """Return the cost of a kernel of its own, where one worker has the scores of all members."""
    page_bytes = NUMBER_BYTES + select_page_bytes(selection, is_fused=False)
    num_bytes = page_bytes * target.pages * target.members
    time_ps = memory_ps(target, num_bytes) + target.launch_ps
    return SelectionCost(selection, reason, num_bytes, time_ps, why_not, not_fused)
