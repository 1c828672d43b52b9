"""Which pages a step reads: budgets, rules over scores, ties, reuse, index formats."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attention.backends.reference.sample import (
    DIM,
    GROUP,
    HEADS,
    LAYERS,
    PAGE,
    Centroid,
    Driver,
    geometry_of,
    same,
)
from tilewright.attention.backends.reference import Session, SessionSpec, csr_of, rows_of
from tilewright.attention.backends.reference.namespace import load_namespace
from tilewright.attention.backends.reference.op.selection import best_entries
from tilewright.attention.flow import trace_flow
from tilewright.attention.planner import (
    DefaultBudget,
    PerHead,
    PlanSpec,
    StateAdvance,
    ThresholdBudget,
    TopPBudget,
)

FEW = settings(max_examples=settings().max_examples // 10)


def test_a_row_that_fits_is_not_scored() -> None:
    driver = Driver("centroid", topk=1000)
    driver.start("a", list(range(30)))
    driver.decode({"a": [1]})
    assert driver.session.counters.pages_scored == 0
    assert driver.session.counters.dense_rows == {"fits": LAYERS * HEADS}


@pytest.mark.parametrize(
    "budget", [TopPBudget(1.0), ThresholdBudget(-math.inf)], ids=["p=1", "threshold=-inf"]
)
def test_a_rule_over_scores_that_takes_all_is_dense(budget: Any) -> None:
    sparse = Driver("centroid", plan=PlanSpec(budget=budget))
    dense = Driver("centroid", plan=PlanSpec(dense_layers=frozenset({0, 1})))
    for driver in (sparse, dense):
        driver.start("a", list(range(50)))
    assert same(sparse.outputs("a", [1, 2]), dense.outputs("a", [1, 2]))
    assert sparse.session.counters.sparse_rows > 0


def test_less_mass_needs_fewer_pages_within_its_bounds() -> None:
    counts = []
    for p in (0.3, 0.9):
        budget = TopPBudget(p, at_most=9, at_least=3)
        driver = Driver("centroid", plan=PlanSpec(budget=budget))
        driver.start("a", list(range(80)))
        counts.append(driver.decode({"a": [1]})["a"][0].lists[0].counts)
    assert all(3 <= few <= many <= 9 for few, many in zip(*counts, strict=True))
    assert counts[0] != counts[1]


def test_heads_can_have_budgets_of_their_own() -> None:
    budget = PerHead({0: DefaultBudget(1), 1: DefaultBudget(5)})
    driver = Driver("centroid", plan=PlanSpec(budget=budget))
    driver.start("a", list(range(80)))
    (first, *_) = driver.decode({"a": [1]})["a"]
    assert first.lists[0].counts == (3, 7)


@pytest.mark.parametrize("advance", StateAdvance)
def test_a_row_below_the_least_context_is_dense_and_its_state_waits(advance: StateAdvance) -> None:
    plan = PlanSpec(budget=DefaultBudget(1), min_context=1000, state_advance=advance)
    driver = Driver("running", plan=plan)
    driver.start("a", list(range(30)))
    before = np.asarray(driver.session.state("a", 0, "running"))
    driver.decode({"a": [1]})
    counters = driver.session.counters
    assert counters.dense_rows == {"short": LAYERS * HEADS}
    after = np.asarray(driver.session.state("a", 0, "running"))
    waits = advance is StateAdvance.VORTEX
    assert np.array_equal(before[:, :7], after[:, :7]) == waits
    assert (counters.num_bytes.state_written == 0) == waits


def test_a_selection_serves_as_many_steps_as_it_is_told_to() -> None:
    driver = Driver("centroid", update_interval=3, topk=2)
    driver.start("a", list(range(70)))
    chosen = [driver.decode({"a": [t]})["a"][0].pages(0, 0).tolist() for t in range(6)]
    middle = [[page for page in pages if 0 < page < 17] for pages in chosen]
    assert middle[0] == middle[1] == middle[2]
    assert middle[3] == middle[4] == middle[5]
    assert middle[0] != middle[3]
    newest = [(70 + step) // PAGE for step in range(6)]
    assert [pages[-1] for pages in chosen] == newest  # also in steps that select nothing
    assert driver.session.counters.reused_selections == 4 * LAYERS


class NanScores(Centroid):
    """Every other page scores NaN."""

    def score(self, q: Any, cache: Any) -> Any:
        fine = super().score(q, cache)
        return fine + (fine - fine) / (fine.maximum(0.0) - fine.maximum(0.0) + fine.relu())


def test_nan_scores_lose_to_every_number_and_are_counted() -> None:
    graph = trace_flow(NanScores(), geometry_of(NanScores()), name="nan")
    plan = PlanSpec(budget=DefaultBudget(4))
    session = Session(graph, SessionSpec(num_kv_heads=1, num_pages=32, plan=plan))
    keys = np.ones((10 * PAGE, 1, DIM), np.float32)
    keys[: 5 * PAGE] = -1.0  # their score is negative, relu makes it 0, and 0 / 0 is NaN
    session.admit("a", range(10 * PAGE))
    step = session.begin({"a": range(10 * PAGE)}, prompt=True)
    step.write(0, "a", keys, keys)
    step.finish()
    step = session.begin({"a": [1]})
    step.write(0, "a", keys[:1], keys[:1])
    result = step.attend(0, {"a": np.ones((1, 1, GROUP, DIM), np.float32)})["a"]
    assert result.pages(0, 0).tolist() == [0, 5, 6, 7, 8, 10]
    assert session.counters.nan_scores == 4


def test_equal_scores_fall_to_the_lower_position() -> None:
    driver = Driver("centroid", topk=3)
    session, ones = driver.session, np.ones((40, HEADS, DIM), np.float32)
    session.admit("a", range(40))
    step = session.begin({"a": range(40)}, prompt=True)
    for layer in range(LAYERS):
        step.write(layer, "a", ones, ones)
    step.finish()
    step = session.begin({"a": [1]})
    step.write(0, "a", ones[:1], ones[:1])
    found = step.attend(0, {"a": np.ones((1, HEADS, GROUP, DIM), np.float32)})["a"]
    assert found.pages(0, 1).tolist() == [0, 1, 2, 3, 10]


def test_select_says_what_attend_reads_and_keeps_nothing() -> None:
    driver = Driver("running")
    driver.start("a", list(range(60)))
    step = driver.session.begin({"a": [1]})
    driver.sequences["a"].append(1)
    keys, values, queries = driver.data("a", 0, 1)
    step.write(0, "a", keys, values)
    before = np.asarray(driver.session.state("a", 0, "running"))
    chosen = step.select(0, {"a": queries})["a"]
    assert np.array_equal(before, np.asarray(driver.session.state("a", 0, "running")))
    read = step.attend(0, {"a": queries})["a"].lists[0]
    np.testing.assert_array_equal(chosen.pages, read.pages)


def test_read_pages_convert_to_csr_and_to_a_table_with_token_counts() -> None:
    driver = Driver("centroid", plan=PlanSpec(budget=PerHead({0: DefaultBudget(1)})))
    driver.start("a", list(range(10 * PAGE)))
    result = driver.decode({"a": [1]})["a"][0]
    lists, blocks = result.lists[0], driver.session.pager.table("a").block_ids()
    csr = csr_of(lists, blocks)
    assert csr.offsets.tolist() == [0, 3, 14]
    assert csr.pages[:3].tolist() == blocks[result.pages(0, 0)].tolist()
    rows = rows_of(lists, page_size=PAGE, num_tokens=10 * PAGE + 1)
    assert rows.num_tokens.tolist() == [2 * PAGE + 1, 10 * PAGE + 1]
    assert rows.pages[0, :3].tolist() == result.pages(0, 0).tolist()
    assert np.all(rows.pages[0, 3:] == -1)


@pytest.mark.parametrize("namespace", ["numpy", "torch"])
@FEW
@given(
    scores=st.lists(st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.0, math.inf]), min_size=1),
    count=st.integers(0, 12),
)
def test_the_best_entries_are_those_of_a_stable_sort(
    namespace: str, scores: list[float], count: int
) -> None:
    if namespace == "torch":
        pytest.importorskip("torch")
    arrays = load_namespace(namespace)
    found = best_entries(arrays.xp, arrays.array(np.array([scores], np.float32)), count)
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    expected = [place in order[:count] for place in range(len(scores))]
    assert np.asarray(found)[0].tolist() == expected
