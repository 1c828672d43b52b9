"""What must not change a result: bit for bit, on every kind of flow and both namespaces."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attention.backends.reference.sample import FLOWS, PAGE, PLANNED, Driver, same
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved

NAMESPACES = ("numpy", "torch")
PROMPTS = st.lists(st.integers(0, 3), min_size=1, max_size=45)
MORE = st.lists(st.integers(0, 3), min_size=1, max_size=7)
FEW = settings(max_examples=settings().max_examples // 25)
ON_TORCH = ("branches", "latent", "running")  # the others differ in ops, which have their own tests

on_every_flow = pytest.mark.parametrize("flow", sorted(FLOWS))
on_both = pytest.mark.parametrize(
    ("flow", "namespace"),
    [*((flow, "numpy") for flow in sorted(FLOWS)), *((flow, "torch") for flow in ON_TORCH)],
)


@pytest.fixture(autouse=True)
def _needs_torch(request: pytest.FixtureRequest) -> None:
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("namespace") == "torch":
        pytest.importorskip("torch").set_num_threads(1)


@pytest.mark.parametrize(
    ("flow", "namespace"),
    [*((flow, "numpy") for flow in PLANNED), ("latent", "torch"), ("running", "torch")],
)
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_a_budget_for_every_page_is_dense_attention(
    flow: str, namespace: str, prompt: list[int], more: list[int]
) -> None:
    sparse = Driver(flow, namespace, topk=1000)
    dense = Driver(flow, namespace, plan=PlanSpec(dense_layers=frozenset({0, 1})))
    for driver in (sparse, dense):
        driver.start("a", prompt)
    assert same(sparse.outputs("a", more), dense.outputs("a", more))
    assert set(dense.session.counters.dense_rows) == {"skipped"}


@on_both
@FEW
@given(prompt=PROMPTS, more=MORE, order=st.permutations(range(64)))
def test_permuting_physical_pages_changes_nothing(
    flow: str, namespace: str, prompt: list[int], more: list[int], order: list[int]
) -> None:
    straight, mixed = Driver(flow, namespace), Driver(flow, namespace, page_order=order)
    for driver in (straight, mixed):
        driver.start("a", prompt)
    assert same(straight.outputs("a", more), mixed.outputs("a", more))


@on_both
@FEW
@given(prompt=PROMPTS, others=st.lists(PROMPTS, min_size=1, max_size=3), data=st.data())
def test_batch_mates_and_their_order_change_nothing(
    flow: str, namespace: str, prompt: list[int], others: list[list[int]], data: st.DataObject
) -> None:
    alone, crowd = Driver(flow, namespace), Driver(flow, namespace)
    alone.start("a", prompt)
    names = data.draw(st.permutations(["a", *(f"b{i}" for i in range(len(others)))]))
    for name in names:
        crowd.start(name, prompt if name == "a" else others[int(name[1:])])
    for token in (1, 2, 3):
        expected = alone.decode({"a": [token]})["a"]
        found = crowd.decode({name: [token] for name in names})["a"]
        assert same([r.output for r in found], [r.output for r in expected])
        assert [r.pages(0, 0).tolist() for r in found] == [r.pages(0, 0).tolist() for r in expected]


@on_both
@FEW
@given(prompt=PROMPTS, other=MORE, more=MORE)
def test_a_prefix_hit_equals_a_cold_start(
    flow: str, namespace: str, prompt: list[int], other: list[int], more: list[int]
) -> None:
    cold, warm = Driver(flow, namespace), Driver(flow, namespace)
    cold.start("a", prompt)
    warm.start("b", [*prompt, *other])
    warm.outputs("b", more)  # advances the state of b on the pages that a will share
    hit = warm.start("a", prompt)
    assert hit == (len(prompt) - 1) // PAGE * PAGE
    expected = cold.outputs("a", more)
    found = []
    for token in more:  # b goes on while a decodes
        warm.decode({"b": [token]})
        found += [np.asarray(r.output)[0] for r in warm.decode({"a": [token]})["a"]]
    assert same(found, expected)


@on_both
@FEW
@given(prompt=PROMPTS, chunk=st.integers(1, 9), more=MORE)
def test_chunks_of_a_prompt_leave_the_same_fields_and_outputs(
    flow: str, namespace: str, prompt: list[int], chunk: int, more: list[int]
) -> None:
    whole, parts = Driver(flow, namespace), Driver(flow, namespace)
    outputs = []
    for driver, size in ((whole, 1000), (parts, chunk)):
        driver.session.admit("a", prompt)
        driver.sequences["a"] = []
        outputs.append(driver.prefill("a", prompt, size))
    assert same(*outputs)
    for name in [item.name for item in whole.graph.fields]:
        fields = [np.asarray(d.session.field("a", 1, name)) for d in (whole, parts)]
        assert same([fields[0]], [fields[1]])
    assert same(whole.outputs("a", more), parts.outputs("a", more))


@on_both
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_snapshot_and_restore_change_nothing(
    flow: str, namespace: str, prompt: list[int], more: list[int]
) -> None:
    driver = Driver(flow, namespace)
    driver.start("a", prompt)
    driver.outputs("a", [1, 2])
    snapshot, sequence = driver.session.snapshot(), list(driver.sequences["a"])
    expected = driver.outputs("a", more)
    for _ in range(2):
        driver.session.restore(snapshot)
        driver.sequences["a"] = list(sequence)
        assert same(driver.outputs("a", more), expected)


@on_both
@FEW
@given(prompt=PROMPTS, drafts=MORE, data=st.data())
def test_verifying_drafts_and_taking_some_back_equals_decoding_the_rest(
    flow: str, namespace: str, prompt: list[int], drafts: list[int], data: st.DataObject
) -> None:
    accepted = data.draw(st.integers(0, len(drafts)))
    single, verified = Driver(flow, namespace), Driver(flow, namespace)
    for driver in (single, verified):
        driver.start("a", prompt)
    results = verified.decode({"a": drafts})["a"]
    expected = single.outputs("a", drafts[:accepted])
    found = [np.asarray(r.output)[token] for token in range(accepted) for r in results]
    assert same(found, expected)
    verified.session.rewind("a", len(prompt) + accepted)
    del verified.sequences["a"][len(prompt) + accepted :]
    assert same(verified.outputs("a", [3, 1, 2]), single.outputs("a", [3, 1, 2]))


@on_both
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_a_fork_goes_on_as_its_parent_would(
    flow: str, namespace: str, prompt: list[int], more: list[int]
) -> None:
    driver, alone = Driver(flow, namespace), Driver(flow, namespace)
    for each in (driver, alone):
        each.start("a", prompt)
        each.outputs("a", [1, 2])
    driver.session.fork("a", "b")
    driver.sequences["b"] = list(driver.sequences["a"])
    driver.outputs("a", [0, 3, 3])  # writes into what was shared
    assert same(driver.outputs("b", more), alone.outputs("a", more))


@on_both
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_a_suspended_request_comes_back_as_it_was(
    flow: str, namespace: str, prompt: list[int], more: list[int]
) -> None:
    driver, alone = Driver(flow, namespace, num_pages=32), Driver(flow, namespace)
    for each in (driver, alone):
        each.start("a", prompt)
        each.outputs("a", [1, 2])
    suspended = driver.session.suspend("a")
    driver.start("b", [5] * 90)  # needs room, so that shared pages are evicted
    driver.session.release("b")
    driver.resume("a", suspended)
    assert same(driver.outputs("a", more), alone.outputs("a", more))


@on_both
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_unwritten_memory_never_reaches_an_output(
    flow: str, namespace: str, prompt: list[int], more: list[int]
) -> None:
    clean, poisoned = Driver(flow, namespace), Driver(flow, namespace)
    for layer in range(2):
        for item in poisoned.graph.fields:
            poisoned.session.store.pool(layer, item.name)[...] = float("nan")
    for driver in (clean, poisoned):
        driver.start("a", prompt)
    assert same(poisoned.outputs("a", more), clean.outputs("a", more))


@on_every_flow
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_several_blocks_in_a_page_of_the_pool_change_nothing(
    flow: str, prompt: list[int], more: list[int]
) -> None:
    one, three = Driver(flow), Driver(flow, blocks_per_page=3)
    for driver in (one, three):
        driver.start("a", prompt)
    assert same(one.outputs("a", more), three.outputs("a", more))


@on_every_flow
@FEW
@given(prompt=PROMPTS, more=MORE)
def test_numpy_and_torch_select_the_same_pages(
    flow: str, prompt: list[int], more: list[int]
) -> None:
    pytest.importorskip("torch")
    drivers = [Driver(flow, namespace) for namespace in NAMESPACES]
    for driver in drivers:
        driver.start("a", prompt)
    for token in more:
        left, right = (driver.decode({"a": [token]})["a"] for driver in drivers)
        for a, b in zip(left, right, strict=True):
            for head in range(len(a.lists[0].counts)):
                np.testing.assert_array_equal(a.pages(0, head), b.pages(0, head))
            np.testing.assert_allclose(
                np.asarray(a.output), np.asarray(b.output), rtol=1e-5, atol=1e-6
            )


@on_every_flow
@FEW
@given(prompt=PROMPTS, first=st.integers(0, 3), last=st.integers(1, 3), more=MORE)
def test_read_pages_ascend_and_hold_the_reserved_ones(
    flow: str, prompt: list[int], first: int, last: int, more: list[int]
) -> None:
    plan = PlanSpec(budget=DefaultBudget(2), reserved=Reserved(first, last))
    driver = Driver(flow, plan=plan)
    driver.start("a", prompt)
    for token in more:
        for result in driver.decode({"a": [token]})["a"]:
            check_pages(result, len(driver.sequences["a"]), first, last)


def check_pages(result: Any, num_tokens: int, first: int, last: int) -> None:
    num_pages = -(-num_tokens // PAGE)
    for head in range(len(result.lists[0].counts)):
        pages = result.pages(0, head).tolist()
        assert pages == sorted(set(pages))
        assert set(pages) <= set(range(num_pages))
        ends = {*range(min(first, num_pages)), *range(max(num_pages - last, 0), num_pages)}
        assert ends <= set(pages)


@FEW
@given(prompt=PROMPTS, small=st.integers(1, 5), large=st.integers(1, 5))
def test_a_larger_budget_reads_more_of_the_same(prompt: list[int], small: int, large: int) -> None:
    small, large = sorted((small, large))
    drivers = [Driver("centroid", topk=topk) for topk in (small, large)]
    for driver in drivers:
        driver.start("a", prompt)
    few, many = (driver.decode({"a": [1]})["a"] for driver in drivers)
    for a, b in zip(few, many, strict=True):
        assert set(a.pages(0, 0)) <= set(b.pages(0, 0))
