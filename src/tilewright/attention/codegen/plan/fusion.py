"""Deciding which stages share a kernel: by bytes moved, launches, space on the chip, workers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.attention.codegen.plan.rounds import is_row_op, page_roots
from tilewright.attention.codegen.plan.selection import (
    SelectionCost,
    memory_ps,
    selection_costs,
    turns_of,
)
from tilewright.attention.codegen.plan.target import Cut, Decision, Fusion, Selection, Target
from tilewright.attention.codegen.plan.traffic import (
    LIST_BYTES,
    MARK_BYTES,
    NUMBER_BYTES,
    select_page_bytes,
)
from tilewright.attention.graph import Node

WITHOUT = "left out by the cut that was given"


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
        found = [_without_target(kept)]
        found += [Decision(item, is_accepted=False, reason=reason) for item in Fusion]
    else:
        costs = selection_costs(target, chosen, kept=kept, segment=segment, apart=apart)
        taken = _cheapest(costs, base.selection)
        named = base.selection if base.selection is taken.selection else None
        alone = taken.not_fused or _not_scored_alone(chosen, rounds)
        fusions = (
            _score_select(target, taken, alone), _select_list(target, taken), _list_attend(target)
        )  # fmt: skip
        found = [_selection(target, cost, taken, named) for cost in costs]
        found += [
            replace(item, is_accepted=False, reason=WITHOUT)
            if item.is_accepted and wanted is not None and item.choice not in wanted.fusions
            else item
            for item in fusions
        ]
    accepted = [item.choice for item in found if item.is_accepted]
    fused = frozenset(item for item in accepted if isinstance(item, Fusion))
    (selected,) = (item for item in accepted if isinstance(item, Selection))
    return replace(base, fusions=fused, selection=selected), tuple(found)


def _without_target(kept: int) -> Decision:
    if kept:
        reason = f"scores are read twice: the best {kept} of each segment, then who is among them"
        return Decision(Selection.SEGMENTS, True, reason)
    return Decision(Selection.DIGITS, True, "nothing bounds how many pages a row may choose")


def _cheapest(costs: Sequence[SelectionCost], wanted: Selection | None) -> SelectionCost:
    """Return the cheapest way that is possible, or the one that is asked for by name, if it is."""
    possible = [cost for cost in costs if not cost.why_not]
    named = [cost for cost in possible if cost.selection is wanted]
    return min(named or possible, key=lambda cost: cost.time_ps)


def _selection(
    target: Target, cost: SelectionCost, taken: SelectionCost, named: Selection | None
) -> Decision:
    """Decide about one way: its bytes, of a row and all members, beside those of the taken one."""
    time = f"{turns_of(target) * cost.time_ps} ps a worker"
    if cost is taken:
        reason = f"{cost.reason}: {time}, {'asked for by name' if named else 'the least'}"
        return Decision(cost.selection, True, reason, cost.num_bytes, cost.num_bytes)
    beside = f"{named} is asked for by name" if named else f"more than {taken.selection}"
    reason = cost.why_not or f"{cost.reason}: {time}, {beside}"
    saved_ps = 0 if cost.why_not else turns_of(target) * (taken.time_ps - cost.time_ps)
    return Decision(cost.selection, False, reason, cost.num_bytes, taken.num_bytes, saved_ps)


def _not_scored_alone(chosen: Node, rounds: Mapping[Node, int]) -> str:
    at = rounds[chosen]
    others = [node for node, index in rounds.items() if index == at and is_row_op(node)]
    roots = page_roots(rounds, (chosen,), at)
    if others != [chosen] or roots != [chosen.inputs[0]]:
        return "other values of the same pages go through memory"
    return ""


def _score_select(target: Target, taken: SelectionCost, why_not: str) -> Decision:
    """Decide whether scores stay in the kernel, or are written by one and read by the next."""
    pages = target.pages * target.members
    inside = select_page_bytes(taken.selection, is_fused=True) * pages
    apart = (NUMBER_BYTES + select_page_bytes(taken.selection, is_fused=False)) * pages
    saved_ps = _saved_ps(target, apart - inside)
    reason = why_not or f"{taken.reason}, in the kernel that scores"
    return Decision(Fusion.SCORE_SELECT, not why_not, reason, inside, apart, saved_ps)


def _select_list(target: Target, taken: SelectionCost) -> Decision:
    """Decide whether members select; apart, the home of a row selects for all, and they wait."""
    pages = target.pages * target.members
    idle = target.members - 1
    marks = 2 * MARK_BYTES * pages  # written by the one, read by the other
    reason = taken.not_fused or "one program chooses among all its pages, and lists them"
    if idle and not taken.not_fused:
        reason += f"; apart, {idle} of the {target.members} workers of a row would wait"
    waiting = select_page_bytes(taken.selection, is_fused=False) * target.pages * idle
    saved_ps = _saved_ps(target, waiting)
    return Decision(Fusion.SELECT_LIST, not taken.not_fused, reason, marks, marks, saved_ps)


def _list_attend(target: Target) -> Decision:
    entries = LIST_BYTES * target.pages * target.members
    reason = "one program reads its own list"
    return Decision(Fusion.LIST_ATTEND, True, reason, entries, entries, _saved_ps(target, 0))


def _saved_ps(target: Target, row_bytes: int) -> int:
    """Return the time of bytes that members need not move, turn by turn, and of a launch."""
    member_bytes = row_bytes // target.members
    return turns_of(target) * memory_ps(target, member_bytes) + target.launch_ps
