"""What a session computes, counts and refuses."""

import math
import sys
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
    graph_of,
    same,
)
from tests.attention.oracle_ops.rounding import round_to
from tilewright.attention.backends.reference import Session, SessionSpec, csr_of, rows_of
from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.namespace import load_namespace
from tilewright.attention.backends.reference.program import run_nodes
from tilewright.attention.backends.reference.selection import best_entries
from tilewright.attention.backends.reference.view import RowSources
from tilewright.attention.flow import FieldSpec, trace_flow
from tilewright.attention.flows.quest import Quest
from tilewright.attention.graph import DType, Side
from tilewright.attention.planner import (
    DefaultBudget,
    PerHead,
    PlanSpec,
    Reserved,
    ThresholdBudget,
    TopPBudget,
    parse_policy,
)
from tilewright.errors import AttentionError, MissingExtraError, PagingError, PlanError

FEW = settings(max_examples=settings().max_examples // 10)


def dense_output(driver: Driver, name: str, layer: int) -> tuple[Any, Any]:
    """Attention of the last token over its whole sequence in float64, and the log-sum-exp."""
    count = len(driver.sequences[name])
    keys, values, queries = driver.data(name, layer, count)
    logits = np.einsum("hgd,thd->hgt", queries[-1].astype(np.float64), keys) / math.sqrt(DIM)
    weights = np.exp(logits)
    read = keys[..., : DIM - 2] if values is None else values
    total = weights.sum(-1)
    return np.einsum("hgt,thd->hgd", weights, read) / total[..., None], np.log(total)


@pytest.mark.parametrize("flow", ["centroid", "latent"])
@pytest.mark.parametrize("length", [1, 3, 4, 5, 37, 1300])  # the last one takes several tiles
def test_dense_attention_is_softmax_over_all_tokens(flow: str, length: int) -> None:
    plan = PlanSpec(dense_layers=frozenset(range(LAYERS)))
    driver = Driver(flow, plan=plan, num_pages=400)
    driver.start("a", list(range(length)))
    results = driver.decode({"a": [7]})["a"]
    for layer, result in enumerate(results):
        output, lse = dense_output(driver, "a", layer)
        np.testing.assert_allclose(np.asarray(result.output)[0], output, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(result.log_sum_exp)[0], lse, rtol=1e-5)


def test_prefill_attention_is_causal_softmax() -> None:
    driver = Driver("centroid")
    driver.session.admit("a", range(21))
    driver.sequences["a"] = []
    outputs = driver.prefill("a", list(range(21)), chunk=8)
    for stop in (1, 5, 16, 17, 21):
        driver.sequences["a"] = list(range(stop))
        expected, _ = dense_output(driver, "a", 1)
        np.testing.assert_allclose(outputs[1][stop - 1], expected, rtol=1e-5, atol=1e-6)


@FEW
@given(data=st.data(), length=st.integers(PAGE, 40))
def test_a_residual_merges_as_if_its_tokens_were_in_the_pages(
    data: st.DataObject, length: int
) -> None:
    cut = data.draw(st.integers(1, length - 1))
    whole, part = Driver("centroid", topk=1000), Driver("centroid", topk=1000)
    tokens = list(range(length))
    whole.start("a", tokens)
    expected = whole.decode({"a": [99]})["a"][0]
    rng = np.random.default_rng(length)
    keys, values, queries = whole.data("a", 0, length + 1)
    part.session.admit("a", tokens[cut:])
    step = part.session.begin({"a": [*tokens[cut:], 99]})
    for layer in range(LAYERS):
        step.write(layer, "a", keys[cut:], values[cut:] if values is not None else None)
    logits = np.einsum("hgd,thd->hgt", queries[-1].astype(np.float64), keys[:cut]) / DIM**0.5
    weights = np.exp(logits)
    assert values is not None
    out = np.einsum("hgt,thd->hgd", weights, values[:cut]) / weights.sum(-1)[..., None]
    query = rng.normal(size=(length + 1 - cut, HEADS, GROUP, DIM)).astype(np.float32)
    query[-1] = queries[-1]
    outs = np.zeros((length + 1 - cut, HEADS, GROUP, DIM))
    sums = np.full((length + 1 - cut, HEADS, GROUP), -np.inf)
    outs[-1], sums[-1] = out, np.log(weights.sum(-1))
    found = step.attend(0, {"a": query}, residual={"a": (outs, sums)})["a"]
    np.testing.assert_allclose(
        np.asarray(found.output)[-1], np.asarray(expected.output)[0], rtol=1e-4, atol=1e-5
    )


def test_state_follows_its_recurrence_from_the_value_at_completion() -> None:
    """r = |v| at completion, then r <- r / 2 + score at every step; an unfinished page waits."""
    driver = Driver("running")
    driver.start("a", list(range(10)))
    expected: dict[int, Any] = {}
    for token in (3, 1, 2, 2, 5, 5, 6):
        driver.decode({"a": [token]})
        keys, values, queries = driver.data("a", 1, len(driver.sequences["a"]))
        assert values is not None
        for page in range(len(keys) // PAGE):
            rows = slice(page * PAGE, (page + 1) * PAGE)
            start = np.linalg.norm(values[rows].astype(np.float64), axis=-1).mean(0)
            score = (queries[-1].mean(1, dtype=np.float64) * keys[rows].mean(0)).sum(-1)
            expected[page] = expected.get(page, start) / 2 + score
    found = np.asarray(driver.session.state("a", 1, "running"))[..., 0, 0]
    for page, value in expected.items():
        np.testing.assert_allclose(found[:, page], value, rtol=1e-5, atol=1e-5)
    assert np.all(found[:, len(expected) :] == 0.0)


@FEW
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 60))
def test_the_bound_of_quest_is_never_below_a_dot_product(seed: int, length: int) -> None:
    """Small whole numbers, whose sums are exact in float32."""
    graph = trace_flow(Quest(), geometry_of(Quest()), name="quest")
    session = Session(graph, SessionSpec(num_kv_heads=1, num_pages=16))
    rng = np.random.default_rng(seed)
    keys = rng.integers(-8, 9, (length, 1, DIM)).astype(np.float32)
    query = rng.integers(-8, 9, (GROUP, DIM)).astype(np.float32)
    session.admit("a", range(length))
    step = session.begin({"a": range(length)}, prompt=True)
    step.write(0, "a", keys, keys)
    step.finish()
    view = session._view("a", 0)
    (branch,) = graph.output.branches
    assert branch.selection is not None
    (score,) = branch.selection.inputs
    frame = Frame(
        namespace=load_namespace("numpy"),
        side=Side.INDEXER,
        geometry=graph.geometry,
        num_heads=1,
        pages=view.pages,
    )
    found = run_nodes([score], frame, RowSources(view, {"q": query[None, None]}))[score]
    for page in range(length // PAGE):
        dots = keys[page * PAGE : (page + 1) * PAGE, 0] @ query.T
        assert found[0, page, 0, 0] >= dots.max()


@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT16, DType.FLOAT8_E4M3])
@pytest.mark.parametrize("namespace", ["numpy", "torch"])
def test_fields_are_computed_in_float32_and_rounded_once(dtype: DType, namespace: str) -> None:
    if namespace == "torch":
        pytest.importorskip("torch")
    driver = Driver("centroid", namespace, dtype=dtype)
    driver.start("a", list(range(3 * PAGE)))
    keys, _, _ = driver.data("a", 0, 3 * PAGE)
    stored = round_to(dtype.value, keys.astype(np.float64)).reshape(3, PAGE, HEADS, DIM)
    expected = round_to(dtype.value, stored.mean(axis=1))
    found = np.asarray(driver.session.field("a", 0, "centroid"))[:, :, 0]
    np.testing.assert_array_equal(found, expected.transpose(1, 0, 2))


def test_counters_say_which_path_ran_and_what_it_touched() -> None:
    plan = PlanSpec(budget=DefaultBudget(2), dense_layers=frozenset({1}))
    driver = Driver("centroid", plan=plan)
    driver.start("a", list(range(10 * PAGE - 1)))
    for token in range(3):
        driver.decode({"a": [token]})
    counters = driver.session.counters
    pages = (10, 11, 11)  # of the row at each step
    assert counters.sparse_rows == 3 * HEADS
    assert counters.dense_rows == {"skipped": 3 * HEADS}
    assert counters.pages_scored == HEADS * sum(count - 2 for count in pages)
    assert counters.pages_selected == HEADS * 3 * 4
    assert counters.pages_read == HEADS * (3 * 4 + sum(pages))
    page_bytes = 2 * PAGE * DIM * 4
    assert counters.num_bytes.kv_read == counters.pages_read * page_bytes
    assert counters.num_bytes.summary_read == HEADS * sum(pages) * DIM * 4
    tokens = 10 * PAGE - 1 + 3
    assert counters.num_bytes.kv_written == LAYERS * HEADS * tokens * 2 * DIM * 4
    assert counters.num_bytes.summary_written == LAYERS * HEADS * 10 * DIM * 4
    assert counters.num_bytes.state_read == 0


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


def test_a_row_below_the_least_context_is_dense_and_its_state_advances() -> None:
    driver = Driver("running", plan=PlanSpec(budget=DefaultBudget(1), min_context=1000))
    driver.start("a", list(range(30)))
    before = np.asarray(driver.session.state("a", 0, "running"))
    driver.decode({"a": [1]})
    assert driver.session.counters.dense_rows == {"short": LAYERS * HEADS}
    after = np.asarray(driver.session.state("a", 0, "running"))
    assert not np.array_equal(before[:, :7], after[:, :7])


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


def test_state_is_counted_and_goes_with_the_request() -> None:
    driver = Driver("running")
    driver.start("a", list(range(4 * PAGE)))
    assert driver.session.state_bytes == 0
    driver.decode({"a": [1]})
    assert driver.session.state_bytes == LAYERS * HEADS * 4 * 4
    driver.session.release("a")
    assert driver.session.state_bytes == 0


def test_a_rewind_beyond_the_window_or_into_the_prompt_is_refused() -> None:
    driver = Driver("running")
    driver.start("a", list(range(20)))
    driver.outputs("a", [1] * 20)
    with pytest.raises(AttentionError, match="at most 16 tokens back"):
        driver.session.rewind("a", 21)
    with pytest.raises(AttentionError, match="the decoded ones"):
        driver.session.rewind("a", 19)
    driver.session.rewind("a", 40)
    driver.session.check_integrity()


def test_wrong_use_is_refused_with_what_to_do() -> None:
    driver = Driver("centroid")
    session = driver.session
    with pytest.raises(PagingError, match="an empty sequence"):
        session.admit("a", [])
    session.admit("a", [1])
    with pytest.raises(AttentionError, match="found no tokens"):
        session.begin({"a": []})
    step = session.begin({"a": [1]})
    with pytest.raises(AttentionError, match="found no keys of layer 0"):
        step.attend(0, {"a": np.zeros((1, HEADS, GROUP, DIM))})
    with pytest.raises(AttentionError, match=r"'a' k: found shape \(1, 3\), expected \(1, 2, 8\)"):
        step.write(0, "a", np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(AttentionError, match="keys and values otherwise"):
        step.write(0, "a", np.zeros((1, HEADS, DIM)))
    with pytest.raises(AttentionError, match=r"found no keys of layers \[0, 1\]"):
        step.finish()
    with pytest.raises(AttentionError, match="no tokens in this step"):
        step.write(0, "b", np.zeros((1, HEADS, DIM)))


def test_a_budget_below_the_reserved_pages_is_refused_at_the_step() -> None:
    plan = PlanSpec(budget=parse_policy("3"), reserved=Reserved(2, 2))
    driver = Driver("centroid", plan=plan)
    driver.start("a", list(range(40)))
    with pytest.raises(PlanError, match="at least the 4 reserved ones"):
        driver.decode({"a": [1]})


def test_unknown_array_libraries_and_sizes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttentionError, match="expected numpy or torch"):
        Session(graph_of("centroid"), SessionSpec(num_kv_heads=1, num_pages=1), namespace="jax")
    with pytest.raises(AttentionError, match="1 under MLA"):
        Session(graph_of("latent"), SessionSpec(num_kv_heads=2, num_pages=1))
    with pytest.raises(AttentionError, match=r"session.num_layers"):
        SessionSpec(num_kv_heads=1, num_pages=1, num_layers=0)
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    with pytest.raises(MissingExtraError, match="bench"):
        load_namespace("torch")


class Snapshotting(Centroid):
    """State that a request finds as an earlier one left it with the page."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        fields = super().create_cache(block_size, head_dim)
        return {**fields, "seen": FieldSpec((1, 1), inherit="snapshot")}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        super().forward_indexer(q, o, cache, ctx)
        cache["seen"] = cache["seen"] + 1.0


def test_a_flow_may_ask_for_the_state_that_was_stored_with_a_shared_page() -> None:
    graph = trace_flow(Snapshotting(), geometry_of(Snapshotting()), name="snapshotting")
    session = Session(graph, SessionSpec(num_kv_heads=1, num_pages=16))
    ones = np.ones((1, 1, DIM), np.float32)

    def decode(request: str, token: int) -> None:
        step = session.begin({request: [token]})
        step.write(0, request, ones, ones)
        step.attend(0, {request: np.ones((1, 1, GROUP, DIM), np.float32)})
        step.finish()

    session.admit("a", [0])
    for token in range(2 * PAGE + 1):
        decode("a", token)
    assert session.admit("b", range(2 * PAGE + 1)).hit_tokens == 2 * PAGE
    # each page was complete, and stored, in the step that first counted it
    assert np.asarray(session.state("b", 0, "seen"))[0, :, 0, 0].tolist() == [1.0, 1.0]
    assert np.asarray(session.state("a", 0, "seen"))[0, :, 0, 0].tolist() == [6.0, 2.0, 0.0]
    decode("b", 5)
    assert np.asarray(session.state("b", 0, "seen"))[0, :2, 0, 0].tolist() == [2.0, 2.0]


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


def test_a_step_without_room_for_one_request_grows_none() -> None:
    driver = Driver("centroid", num_pages=12)
    driver.start("a", list(range(PAGE)))
    driver.start("b", list(range(10, 10 + 9 * PAGE)))
    driver.session.fork("a", "c")
    with pytest.raises(PagingError, match="release a request"):
        driver.session.begin({"a": [1], "b": [1], "c": [1]})
    driver.session.check_integrity()
    assert driver.session.pager.table("a").num_tokens == PAGE
    driver.decode({"a": [1], "b": [1]})


@pytest.mark.parametrize("flow", ["running", "heavy"])
def test_a_cancelled_step_leaves_nothing(flow: str) -> None:
    driver, other = Driver(flow), Driver(flow)
    for each in (driver, other):
        each.start("a", list(range(18)))
        each.outputs("a", [1, 2])
    step = driver.session.begin({"a": [3, 3, 3]})
    driver.sequences["a"] += [3, 3, 3]
    for layer in range(LAYERS):
        keys, values, queries = driver.data("a", layer, 3)
        step.write(layer, "a", keys, values)
        step.attend(layer, {"a": queries})
    step.cancel()
    del driver.sequences["a"][-3:]
    assert same(driver.outputs("a", [4, 5]), other.outputs("a", [4, 5]))


def test_a_request_is_in_one_step_at_a_time() -> None:
    driver = Driver("centroid")
    driver.start("a", list(range(5)))
    step = driver.session.begin({"a": [1]})
    for use in (
        lambda: driver.session.begin({"a": [2]}),
        lambda: driver.session.rewind("a", 5),
        lambda: driver.session.fork("a", "b"),
        lambda: driver.session.suspend("a"),
        driver.session.snapshot,
    ):
        with pytest.raises(AttentionError, match="a step that has not ended"):
            use()
    step.cancel()
    with pytest.raises(AttentionError, match="a step that has ended"):
        step.write(0, "a", np.zeros((1, HEADS, DIM)), np.zeros((1, HEADS, DIM)))


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
