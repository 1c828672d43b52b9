"""Choosing over how many PEs a row is cut: by what the busiest PE moves, and what joining costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.attention.backends.machine.compiled import kernels_for, target_of
from tilewright.attention.backends.machine.layout import RowPlacement
from tilewright.attention.backends.machine.memory import layout_of
from tilewright.attention.codegen.plan.selection import memory_ps, turns_of
from tilewright.attention.graph import Graph
from tilewright.attention.planner import StepPlan, most_candidates
from tilewright.machine.build import Machine
from tilewright.units import format_ps

WAYS = 3  # over the tree of members: candidates up, the last one down, attention up


@dataclass(frozen=True, slots=True)
class PlacementCost:
    """What a placement is expected to take; ``busy_pes`` have some of it to do."""

    placement: RowPlacement
    time_ps: int
    busy_pes: int

    def __str__(self) -> str:
        return f"{self.placement} {format_ps(self.time_ps)} on {self.busy_pes} PEs"


def choose_placement(costs: Sequence[PlacementCost]) -> PlacementCost:
    """What takes the least time; of equals the one with fewer PEs, then the first."""
    return min(costs, key=lambda cost: (cost.time_ps, cost.busy_pes))


def placement_costs(
    machine: Machine,
    graph: Graph,
    plan: StepPlan,
    *,
    num_tokens: tuple[int, ...],
    num_kv_heads: int,
    device: str = "all",
) -> tuple[PlacementCost, ...]:
    """Of all placements that the machine has: bytes of the busiest PE, and messages of its row."""
    found = []
    for placement in RowPlacement:
        layout = layout_of(
            machine,
            graph,
            placement=placement,
            num_tokens=num_tokens,
            num_kv_heads=num_kv_heads,
            device=device,
        )
        target = target_of(machine, layout)
        file = kernels_for(graph, target, most=most_candidates(plan)).file
        pages = layout.member_pages * layout.members
        listed = max((budget.at_most for budget in plan.budgets), default=pages)
        predicted = file.predicted_bytes(pages=pages, listed=min(listed, pages), heads=num_kv_heads)
        row_bytes = sum(predicted.values())
        levels = (layout.members - 1).bit_length()
        row_ps = memory_ps(target, row_bytes // layout.members) + WAYS * levels * target.message_ps
        time_ps = turns_of(target) * row_ps + len(file.step) * target.launch_ps
        found.append(PlacementCost(placement, time_ps, len(layout.used_pes)))
    return tuple(found)
