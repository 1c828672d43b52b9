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
LIVING_BLOCKS = 3  # of a row's scores, while they are sorted
SEARCH_PASSES = 20  # commands that read the scores of a row: they are made keys, sorted, marked
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
    why_not = apart or _not_on_chip(target, chosen)
    return [
        _score_select(target, why_not or _not_scored_alone(chosen, rounds)),
        _select_list(target, why_not),
        _list_attend(target),
    ]


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


def _not_on_chip(target: Target, chosen: Node) -> str:
    """Why one program cannot choose among all pages that it has; empty if it can."""
    if not can_select_block(chosen):
        return f"{chosen.op.name} is no choice by count for all query heads together"
    if target.members > 1 and Merge.IPCQ not in target.merges:
        return f"{target.members} members choose together, and have no queues"
    need = _row_bytes(target)
    cost_ps, saved_ps = _spill_ps(target), _memory_ps(target, _scores_in_memory(target))
    if need > target.on_chip_bytes:
        return f"{need} bytes of scores, {target.on_chip_bytes} on the chip"
    if cost_ps > saved_ps + target.launch_ps:
        return f"spilling {need} bytes of scores takes {cost_ps} ps, memory {saved_ps} ps"
    return ""


def _not_scored_alone(chosen: Node, rounds: Mapping[Node, int]) -> str:
    at = rounds[chosen]
    others = [node for node, index in rounds.items() if index == at and is_row_op(node)]
    roots = page_roots(rounds, (chosen,), at)
    if others != [chosen] or roots != [chosen.inputs[0]]:
        return "other values of the same pages go through memory"
    return ""


def _score_select(target: Target, why_not: str) -> Decision:
    if why_not:
        return Decision(Fusion.SCORE_SELECT, is_accepted=False, reason=why_not)
    saved_bytes = 2 * SCORE_BYTES * target.pages  # written, and read again
    reason = f"{_row_bytes(target)} bytes of scores stay on the chip"
    saved_ps = _memory_ps(target, saved_bytes) + target.launch_ps
    return Decision(Fusion.SCORE_SELECT, True, reason, saved_bytes, saved_ps)


def _select_list(target: Target, why_not: str) -> Decision:
    if why_not:
        return Decision(Fusion.SELECT_LIST, is_accepted=False, reason=why_not)
    saved_bytes = _scores_in_memory(target)
    saved_ps = _memory_ps(target, saved_bytes) + target.launch_ps - _spill_ps(target)
    reason = "one program chooses among all its pages on the chip, and lists them"
    return Decision(Fusion.SELECT_LIST, True, reason, saved_bytes, saved_ps)


def _row_bytes(target: Target) -> int:
    """Of the blocks of a row's scores that live at one time."""
    return LIVING_BLOCKS * SCORE_BYTES * target.pages * target.members


def _spill_ps(target: Target) -> int:
    """Time on the ports of what does not fit into the registers, pass by pass."""
    spilled = max(0, _row_bytes(target) - target.register_bytes)
    return spilled * SEARCH_PASSES * PS_PER_US // target.spill_bytes_per_us


def _scores_in_memory(target: Target) -> int:
    """Bytes of a selection that looks for the last key in memory, digit by digit."""
    return MEMORY_PASSES * SCORE_BYTES * target.pages


def _list_attend(target: Target) -> Decision:
    reason = "one program reads its own list"
    return Decision(Fusion.LIST_ATTEND, True, reason, 0, target.launch_ps)


def _memory_ps(target: Target, num_bytes: int) -> int:
    return num_bytes * PS_PER_US // target.memory_bytes_per_us
