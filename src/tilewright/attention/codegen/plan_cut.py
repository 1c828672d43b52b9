"""Deciding which stages share a kernel: by bytes moved, launches, and space on the chip."""

from collections.abc import Mapping, Sequence

from tilewright.attention.codegen.cut import Cut, Decision, Fusion
from tilewright.attention.codegen.rounds import is_row_op, page_roots
from tilewright.attention.codegen.select_block import can_select_block
from tilewright.attention.codegen.target import Merge, Target
from tilewright.attention.graph import Node
from tilewright.units import PS_PER_US

__all__ = ("decide", "plan_cut")

SCORE_BYTES = 4
LIVING_BLOCKS = 3  # of a row's scores, while the last key that is in is looked for
SEARCH_PASSES = 33  # over the keys of a row
MEMORY_PASSES = 10  # over the scores in memory, where they do not stay on the chip


def plan_cut(
    target: Target | None, chosen: Node, rounds: Mapping[Node, int], apart: str = ""
) -> list[Decision]:
    """What the cost of memory, launches and space on the chip says of each fusion.

    ``apart`` says why a selection must be a kernel of its own, if it must.
    """
    if target is None:
        reason = "programs have tiles and parts, none a whole row"
        return [Decision(item, is_accepted=False, reason=reason) for item in Fusion]
    first = _score_select(target, chosen, rounds)
    if apart:
        first = Decision(Fusion.SCORE_SELECT, is_accepted=False, reason=apart)
    return [first, _select_list(target, first), _list_attend(target)]


def decide(planned: Sequence[Decision], wanted: Cut | None) -> tuple[Decision, ...]:
    """What is planned, without what a cut that was given leaves out."""
    if wanted is None:
        return tuple(planned)
    without = "left out by the cut that was given"
    return tuple(
        item
        if item.fusion in wanted.fusions or not item.is_accepted
        else Decision(item.fusion, is_accepted=False, reason=without)
        for item in planned
    )


def _score_select(target: Target, chosen: Node, rounds: Mapping[Node, int]) -> Decision:
    why_not = _not_in_one_block(target, chosen, rounds)
    saved_bytes = target.pages * SCORE_BYTES * (1 + MEMORY_PASSES)
    if why_not:
        return Decision(Fusion.SCORE_SELECT, is_accepted=False, reason=why_not)
    need = LIVING_BLOCKS * SCORE_BYTES * target.pages
    spilled = max(0, need - target.register_bytes)
    saved_ps = _memory_ps(target, saved_bytes) + target.launch_ps
    cost_ps = spilled * SEARCH_PASSES * PS_PER_US // target.spill_bytes_per_us
    if need > target.on_chip_bytes or cost_ps > saved_ps:
        reason = f"{need} bytes of scores do not fit on the chip, spilling costs {cost_ps} ps"
        return Decision(Fusion.SCORE_SELECT, is_accepted=False, reason=reason)
    reason = f"{need} bytes of scores stay on the chip"
    return Decision(Fusion.SCORE_SELECT, True, reason, saved_bytes, saved_ps - cost_ps)


def _not_in_one_block(target: Target, chosen: Node, rounds: Mapping[Node, int]) -> str:
    """Why the scores cannot be one block of the program that chooses; empty if they can."""
    if not can_select_block(chosen):
        return f"{chosen.op.name} is no choice by count for all query heads together"
    if target.members > 1 and Merge.IPCQ not in target.merges:
        return f"{target.members} members choose together, and have no queues"
    at = rounds[chosen]
    others = [node for node, index in rounds.items() if index == at and is_row_op(node)]
    roots = page_roots(rounds, (chosen,), at)
    if others != [chosen] or roots != [chosen.inputs[0]]:
        return "other values of the same pages go through memory"
    return ""


def _select_list(target: Target, before: Decision) -> Decision:
    if not before.is_accepted:
        reason = "the selection is a kernel of its own"
        return Decision(Fusion.SELECT_LIST, is_accepted=False, reason=reason)
    reason = "one program has the marks of all its pages"
    return Decision(Fusion.SELECT_LIST, True, reason, 0, target.launch_ps)


def _list_attend(target: Target) -> Decision:
    reason = "one program reads its own list"
    return Decision(Fusion.LIST_ATTEND, True, reason, 0, target.launch_ps)


def _memory_ps(target: Target, num_bytes: int) -> int:
    return num_bytes * PS_PER_US // target.memory_bytes_per_us
