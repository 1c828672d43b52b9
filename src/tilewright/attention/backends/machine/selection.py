"""Which pages a row reads where there are no scores: named models, and marks out of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import numpy as np

from tilewright.attention.backends.machine.layout import Int64s
from tilewright.attention.graph import Graph, Side
from tilewright.attention.ops.selection import SelectionOp, TopK
from tilewright.attention.planner import StepPlan
from tilewright.errors import AttentionError


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any candidates, each row's own, drawn without replacement."""

    seed: int = 0

    name: ClassVar[Literal["uniform"]] = "uniform"


@dataclass(frozen=True, slots=True)
class Recent:
    """The candidates that were written last."""

    name: ClassVar[Literal["recent"]] = "recent"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The pages that the rows of an earlier step read, reserved ones included."""

    pages: tuple[tuple[int, ...], ...]
    source: str = "recorded"

    name: ClassVar[Literal["recorded"]] = "recorded"


SelectionModel = Uniform | Recent | Recorded


def planned_counts(graph: Graph, plan: StepPlan) -> Int64s:
    """Candidates that a model takes in each row.

    The plan's number: of a budget by scores or mass its upper bound, since only scores could tell
    it. A flow whose selections all have numbers of their own takes the largest of them.
    """
    ops = [node.op for node in graph.nodes(Side.INDEXER) if isinstance(node.op, SelectionOp)]
    own = [op.k if isinstance(op, TopK) else getattr(op, "max_pages", None) for op in ops]
    numbers = [number for number in own if number is not None]
    counts = []
    for row in range(plan.num_rows):
        candidates = len(plan.candidates(row))
        reserved = int(plan.num_blocks[row]) - candidates
        planned = plan.budgets[row].at_most - reserved
        wanted = max(numbers) if numbers and len(numbers) == len(own) else planned
        counts.append(min(max(wanted, 0), candidates))
    return np.array(counts, dtype=np.int64)


def model_pages(model: SelectionModel, plan: StepPlan, counts: Sequence[int]) -> list[Int64s]:
    """The logical pages that each row selects, ascending; reserved pages are not among them."""
    if isinstance(model, Recorded) and len(model.pages) != plan.num_rows:
        found = f"pages of {len(model.pages)} rows in {model.source}"
        fix = "record a step of the same batch and KV heads"
        raise AttentionError("selection", found, f"those of {plan.num_rows}", fix)
    return [_pages(model, plan, row, int(counts[row])) for row in range(plan.num_rows)]


def _pages(model: SelectionModel, plan: StepPlan, row: int, count: int) -> Int64s:
    candidates = plan.candidates(row)
    match model:
        case Uniform(seed=seed):
            generator = np.random.default_rng((seed, row))
            drawn = generator.permutation(len(candidates))[:count]
            return candidates.start + np.sort(drawn)
        case Recent():
            return np.arange(candidates.stop - count, candidates.stop, dtype=np.int64)
        case Recorded(pages=recorded, source=source):
            pages, num_pages = np.array(sorted(recorded[row]), np.int64), int(plan.num_blocks[row])
            if pages.size and not 0 <= pages[0] <= pages[-1] < num_pages:
                found = f"pages {pages[0]} to {pages[-1]} of row {row}"
                fix = "record a step of the same contexts"
                raise AttentionError(f"selection {source}", found, f"some of {num_pages}", fix)
            return pages[(pages >= candidates.start) & (pages < candidates.stop)]
        case _:
            assert_never(model)
