"""Which blocks' saved state a step advances, and which rows it makes dense for that reason."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import Graph
from tilewright.attention.planner.budget import RowFacts
from tilewright.attention.planner.plan import PlanSpec, RowPath, StateAdvance, StepPlan, plan_step

Int32s = npt.NDArray[np.int32]


def rows_read_whole(plan: StepPlan, graph: Graph) -> tuple[bool, ...]:
    """Return for each row whether its plan alone makes attention read every block.

    Rows of skipped layers and short rows are dense under every flow. A row that fits its budget
    is dense under a flow that saves state, where state advances as in Vortex: nothing of the flow
    runs for that row. Under other flows the selection of the flow decides.
    """
    dense = {RowPath.SKIPPED, RowPath.SHORT}
    if graph.has_saves and plan.state_advance is StateAdvance.VORTEX:
        dense.add(RowPath.FITS)
    return tuple(path in dense for path in plan.paths)


def state_pages(plan: StepPlan, graph: Graph) -> Int32s:
    """Return for each row how many blocks, from block 0 on, this step's Saves write; int32 [rows].

    0 where no Save of the row takes effect. As in Vortex a row that selects covers all blocks but
    the reserved last ones. With `StateAdvance.EVERY_BLOCK` a row covers its complete blocks, and
    the unfinished one too under a flow that summarizes it.
    """
    if not graph.has_saves:
        return np.zeros(plan.num_rows, dtype=np.int32)
    match plan.state_advance:
        case StateAdvance.VORTEX:
            advances = np.array([plan.is_sparse(row) for row in range(plan.num_rows)])
            covered = plan.num_blocks - plan.reserved.last
        case StateAdvance.EVERY_BLOCK:
            advances = np.array([path is not RowPath.SKIPPED for path in plan.paths])
            complete = plan.num_tokens // graph.geometry.page_size
            covered = plan.num_blocks if graph.partial_pages else complete
    return np.where(advances, covered, 0).astype(np.int32)


def earlier_state_pages(spec: PlanSpec, rows: Sequence[RowFacts], graph: Graph) -> Int32s:
    """Return `state_pages` of the step before: each row with one token less; int32 [rows].

    A row whose first token is the new one has no step before, and 0 blocks.
    """
    size = graph.geometry.page_size
    before = [
        replace(
            facts,
            num_tokens=max(facts.num_tokens - 1, 1),
            num_blocks=max(-(-(facts.num_tokens - 1) // size), 1),
        )
        for facts in rows
    ]
    covered = state_pages(plan_step(spec, before), graph)
    had_step = np.array([facts.num_tokens > 1 for facts in rows])
    return np.where(had_step, covered, 0).astype(np.int32)
