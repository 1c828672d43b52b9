"""State that goes from step to step: as the reference keeps it, over the ends of pages."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.backends.reference.sample import (
    Branches,
    Centroid,
    Heavy,
    PartialRunning,
    Running,
)
from tests.attention.backends.reference.test_state_advance import KeptBranches
from tests.attention.triton.pair import LARGE, Pair, Rows, geometry_of, graph_of, run_steps
from tilewright.attention.flow import FieldSpec, FlowBase, registry
from tilewright.attention.graph import DType
from tilewright.attention.indexer import AttentionMass
from tilewright.attention.planner import (
    Budget,
    DefaultBudget,
    PerHead,
    Reserved,
    StateAdvance,
    ThresholdBudget,
    parse_policy,
)

STATEFUL = ("h2o", "lserve", "rocketkv", "running_avg_block_sparse", "snapkv", "tova")
STEPS = 4


def rows_of(page_size: int) -> Rows:
    """Requests that end a page and begin another in these steps."""
    tokens = (page_size - 1, 12 * page_size - 2)
    return Rows(tokens=tokens, budget=DefaultBudget(topk=3), kv_heads=1)


@pytest.mark.parametrize("name", STATEFUL)
def test_steps_select_attend_and_keep_as_the_reference_does(name: str) -> None:
    flow = registry.get(name)()
    size = 16 if name == "lserve" else 4  # whose logical pages have 16 tokens
    graph = graph_of(flow, geometry_of(flow.kind, DType.FLOAT32, page_size=size, width=32), name)
    check(run_steps(graph, rows_of(size), STEPS, LARGE))


def check(pairs: list[Pair]) -> None:
    for pair in pairs:
        assert pair.pages == pair.expected_pages
        assert pair.worst_error() < 1e-5
        for state, (expected, found) in pair.states.items():
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=state)


class Stored(Centroid):
    """State that is stored with a page when it is complete, in four bits."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        seen = FieldSpec((1, 3), dtype="int4", inherit="snapshot", initial=-2.0)
        return {**super().create_cache(block_size, head_dim), "seen": seen}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        score = self.score(q, cache)
        o.select((score + cache["seen"].max(2)).topk())
        cache["seen"] = cache["seen"] + (score > 0.0).where(2.0, -1.0).cast("int32")


class Weighed(Branches):
    """Two branches whose masses are added up."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        heat = {"heat": FieldSpec((1, 2))}
        return {**super().create_cache(block_size, head_dim), **heat}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        super().forward_indexer(q, o, cache, ctx)
        cache["heat"] = AttentionMass()(ctx=ctx)


@pytest.mark.parametrize("flow", [Running, PartialRunning, Heavy, Stored, Weighed])
def test_state_begins_with_its_page_and_follows_attention(flow: type[FlowBase]) -> None:
    made = flow()
    pairs = run_steps(
        graph_of(made, geometry_of(made.kind, DType.FLOAT32)), rows_of(4), STEPS, LARGE
    )
    check(pairs)
    for expected, _ in pairs[-1].states.values():
        assert len(np.unique(expected)) > 1, "the data does not tell pages apart"


class SavedOnly(Centroid):
    """State that nothing reads: what kernels keep of it must still be right."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        return {**super().create_cache(block_size, head_dim), "last": (1, 1)}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        score = self.score(q, cache)
        cache["last"] = score
        o.select(score.topk())


BUDGETS: tuple[Budget, ...] = (
    DefaultBudget(topk=2, ratio=0.5),
    PerHead({1: DefaultBudget(topk=99)}, DefaultBudget(topk=2)),
    ThresholdBudget(0.0, at_most=6),
    parse_policy("n_blocks if step % 2 else 6"),  # a row that selects, then fits, then selects
)


ALTERNATES = {"budget": BUDGETS[-1], "reserved": Reserved(1, 1), "tokens": 40, "seed": 1}


@settings(max_examples=6)
@example(flow=Running, advance=StateAdvance.VORTEX, **ALTERNATES)
@example(flow=SavedOnly, advance=StateAdvance.VORTEX, **ALTERNATES)
@given(
    flow=st.sampled_from((Running, SavedOnly, KeptBranches)),
    budget=st.sampled_from(BUDGETS),
    reserved=st.builds(Reserved, st.integers(0, 2), st.integers(1, 3)),
    tokens=st.integers(10, 46),
    advance=st.sampled_from(StateAdvance),
    seed=st.integers(0, 1000),
)
def test_kernels_advance_the_state_that_the_reference_advances(
    flow: type[FlowBase],
    budget: Budget,
    reserved: Reserved,
    tokens: int,
    advance: StateAdvance,
    seed: int,
) -> None:
    made = flow()
    rows = Rows(
        tokens=(tokens, 47 - tokens // 2),
        budget=budget,
        reserved=reserved,
        seed=seed,
        state_advance=advance,
    )
    check(run_steps(graph_of(made, geometry_of(made.kind, DType.FLOAT32)), rows, 3, LARGE))
