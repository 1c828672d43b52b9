"""What a session refuses, and that nothing half-done stays behind."""

import sys

import numpy as np
import pytest

from tests.attention.backends.reference.sample import (
    DIM,
    GROUP,
    HEADS,
    LAYERS,
    PAGE,
    Driver,
    graph_of,
    same,
)
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.backends.reference.namespace import load_namespace
from tilewright.attention.planner import (
    PlanSpec,
    Reserved,
    parse_policy,
)
from tilewright.errors import AttentionError, MissingExtraError, PagingError, PlanError


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
