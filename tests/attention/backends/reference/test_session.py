"""What a session computes, keeps and counts."""

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
)
from tests.attention.oracle_ops.rounding import round_to
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.backends.reference.namespace import load_namespace
from tilewright.attention.backends.reference.op import run_nodes
from tilewright.attention.backends.reference.op.frame import Frame
from tilewright.attention.backends.reference.view import RowSources
from tilewright.attention.flow import FieldSpec, trace_flow
from tilewright.attention.flows.quest import Quest
from tilewright.attention.graph import DType, Side
from tilewright.attention.planner import (
    DefaultBudget,
    PlanSpec,
    StateAdvance,
)

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


def test_every_page_follows_its_recurrence_from_the_value_at_completion_if_asked_to() -> None:
    """r = |v| at completion, then r <- r / 2 + score at every step; an unfinished page waits."""
    driver = Driver("running", plan=PlanSpec(state_advance=StateAdvance.EVERY_BLOCK))
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


def test_state_is_counted_and_goes_with_the_request() -> None:
    driver = Driver("running")
    driver.start("a", list(range(4 * PAGE)))
    assert driver.session.state_bytes == 0
    driver.decode({"a": [1]})
    assert driver.session.state_bytes == LAYERS * HEADS * 4 * 4
    driver.session.release("a")
    assert driver.session.state_bytes == 0


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
    plan = PlanSpec(state_advance=StateAdvance.EVERY_BLOCK)
    session = Session(graph, SessionSpec(num_kv_heads=1, num_pages=16, plan=plan))
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
