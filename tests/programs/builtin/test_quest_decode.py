"""Quest: the best pages by their bounds, and attention over them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.mutant import mutant
from tests.programs.small import run_small
from tilewright.errors import BenchError
from tilewright.programs.builtin import quest_decode as quest
from tilewright.programs.builtin.quest_decode import best_pages, is_choice, page_scores


@settings(max_examples=8, deadline=None)
@given(pages=st.integers(1, 40), share=st.floats(0, 1), turn=st.integers(1, 9), ties=st.booleans())
def test_any_budget_gives_attention_over_the_best_pages(
    pages: int, share: float, turn: int, ties: bool
) -> None:
    budget = max(1, int(pages * share))
    outcome = run_small("quest_decode", pages=pages, budget=budget, turn=turn, ties=ties)
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@pytest.mark.parametrize("mistake", ["tl.arange(0, pages)", "0 * tl.arange(0, pages)"])
def test_a_kernel_that_breaks_ties_in_another_way_is_wrong(
    mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "(pages - 1 - tl.arange(0, pages))"
    monkeypatch.setattr(quest, "_keys_of", mutant(quest._keys_of, text, f"({mistake})"))
    assert run_small("quest_decode", ties=True).values_ok is False


@pytest.mark.parametrize("selection", ["uniform", "recent"])
@pytest.mark.parametrize("data", [True, False])
def test_a_named_selection_needs_no_scores(selection: str, data: bool) -> None:
    outcome = run_small("quest_decode", selection=selection, data=data)
    assert outcome.values_ok is (True if data else None)
    assert outcome.notes == (f"selection: {selection}, 6 of 32 pages",)


def test_scores_need_values() -> None:
    with pytest.raises(BenchError, match="selection=scores in a run without values"):
        run_small("quest_decode", data=False)


def test_a_smaller_budget_takes_less_time() -> None:
    times = [run_small("quest_decode", budget=budget).latency_ps for budget in (4, 16, 32)]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_a_score_is_no_less_than_any_product_with_a_key_of_the_page() -> None:
    rng = np.random.default_rng(3)
    queries, keys = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 5, 4, 8))
    scores = page_scores(queries, keys.min(2), keys.max(2))
    products = np.einsum("hgd,hptd->hpgt", queries, keys).max((2, 3))
    assert (scores >= products).all()


def test_among_equal_scores_the_lowest_page_comes_first() -> None:
    assert best_pages(np.array([1.0, 3.0, 3.0, 2.0, 3.0]), 4).tolist() == [1, 2, 4, 3]


@pytest.mark.parametrize(
    ("chosen", "is_right"),
    [
        ([1, 2, 0], True),
        ([2, 1, 0], False),  # equal scores in another order
        ([1, 2, 3], True),  # f32 cannot tell page 3 from page 0
        ([1, 2, 4], False),
        ([1, 1, 2], False),
        ([1, 2, 9], False),
        ([1, 2, -1], False),
    ],
)
def test_a_choice_is_right_up_to_what_f32_cannot_tell_apart(
    chosen: list[int], is_right: bool
) -> None:
    scores = np.array([2.0, 3.0, 3.0, 2.0 - 1e-7, 1.0])
    assert is_choice(scores, np.array(chosen)) is is_right


def test_a_budget_beyond_the_pages_is_refused() -> None:
    with pytest.raises(BenchError, match="budget=33 of 32 pages"):
        run_small("quest_decode", budget=33)
