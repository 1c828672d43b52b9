"""Selections without scores: as many pages as planned, candidates only, the same each time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attention.machine.pair import graph_of
from tilewright.attention.backends.machine import (
    Recent,
    Recorded,
    SelectionModel,
    Uniform,
    model_pages,
    planned_counts,
)
from tilewright.attention.planner import (
    PlanSpec,
    Reserved,
    RowFacts,
    StepPlan,
    parse_policy,
    plan_step,
)
from tilewright.errors import AttentionError


def planned(pages: tuple[int, ...], budget: int, reserved: Reserved) -> StepPlan:
    facts = [RowFacts(count, count * 4) for count in pages]
    return plan_step(PlanSpec(budget=parse_policy(str(budget)), reserved=reserved), facts)


@given(
    pages=st.lists(st.integers(1, 50), min_size=1, max_size=5).map(tuple),
    more=st.integers(0, 20),
    first=st.integers(0, 3),
    last=st.integers(1, 3),
    model=st.one_of(st.builds(Uniform, st.integers(0, 9)), st.just(Recent())),
)
def test_a_model_takes_the_planned_number_of_candidates(
    pages: tuple[int, ...], more: int, first: int, last: int, model: SelectionModel
) -> None:
    plan = planned(pages, first + last + more, Reserved(first, last))
    counts = planned_counts(graph_of("quest"), plan)
    chosen = model_pages(model, plan, counts.tolist())
    for row, found in enumerate(chosen):
        candidates = plan.candidates(row)
        assert len(found) == counts[row] == min(more, len(candidates))
        assert found.tolist() == sorted(set(found.tolist()))
        assert all(page in candidates for page in found.tolist())


def test_recent_pages_are_the_last_candidates() -> None:
    plan = planned((20,), 5, Reserved(1, 1))
    assert model_pages(Recent(), plan, [3])[0].tolist() == [16, 17, 18]


def test_the_seed_decides_and_rows_differ() -> None:
    plan = planned((400, 400), 34, Reserved(1, 1))
    one, again, other = (model_pages(Uniform(seed), plan, [32, 32]) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one[0].tolist() != one[1].tolist()


def test_recorded_pages_lose_their_reserved_ones() -> None:
    plan = planned((10,), 5, Reserved(1, 1))
    assert model_pages(Recorded(((0, 4, 7, 9),)), plan, [3])[0].tolist() == [4, 7]


def test_recorded_pages_of_another_step_are_refused() -> None:
    plan = planned((10,), 5, Reserved(1, 1))
    with pytest.raises(AttentionError, match="found pages of 2 rows in mine"):
        model_pages(Recorded(((1,), (2,)), "mine.json"), plan, [3])
    with pytest.raises(AttentionError, match="found pages 3 to 12 of row 0, expected some of 10"):
        model_pages(Recorded(((3, 12),)), plan, [3])
