from typing import Any

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.flow.making import examine, score
from tilewright.attention import cache as cache_ops
from tilewright.attention import indexer
from tilewright.attention.flow import registry
from tilewright.attention.graph import Side
from tilewright.attention.verify import check_flows


def codes(forward: Any, **more: Any) -> list[str]:
    return [warning.code for warning in examine(forward, **more).warnings]


def test_a_plain_flow_has_no_warnings() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    assert codes(forward) == []


def test_an_unused_value_is_told_with_its_line_and_is_no_part_of_the_graph() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        q.mean(1).exp()
        o.select(score(q, cache).topk())

    graph, (warning,) = examine(forward)
    assert warning.code == "unused-value"
    assert str(warning).startswith("test_lint.py:")
    assert not any(node.op.name == "Exp" for node in graph.nodes(Side.INDEXER))


def test_a_number_added_to_all_pages_before_a_top_k_has_no_effect() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        s = score(q, cache)
        o.select((s - s.mean(0)).topk())

    assert codes(forward) == ["order-kept"]


@pytest.mark.parametrize("change", ["exp", "softmax", "scale"])
def test_what_keeps_the_order_of_scores_has_no_effect(change: str) -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        s = score(q, cache)
        changed = {
            "exp": lambda: s.exp(),
            "softmax": lambda: s.softmax(0),
            "scale": lambda: s * 2.0,
        }
        o.select(changed[change]().topk())

    assert codes(forward) == ["order-kept"]


def test_what_changes_the_order_of_scores_is_not_reported() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        s = (q @ cache["centroids"].T).T
        weights = s.softmax(0).max(2)  # over pages, then over heads: another order
        o.select((weights + indexer.PageAge()(ctx=ctx) * -0.01).topk())

    assert codes(forward) == []


def test_weights_before_a_top_p_do_matter() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).softmax(0).top_p(0.9))

    assert codes(forward) == []


def test_a_state_that_nobody_reads_and_a_field_that_nobody_writes_are_told() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        cache["running"] = score(q, cache)
        o.select((score(q, cache) + cache["empty"]).topk())

    fields = {"centroids": (1, 16), "running": (1, 1), "empty": (1, 1), "spare": (1, 1)}
    found = codes(forward, fields=fields)
    assert found.count("state-never-read") == 1
    assert found.count("field-never-written") == 2  # empty, spare
    assert found.count("field-never-read") == 1  # spare


def test_a_field_written_twice_keeps_the_last_value_and_is_told() -> None:
    def side(cache: Any, _loc: Any, _ctx: Any) -> None:
        cache["centroids"] = cache["k"].mean(1)
        cache["centroids"] = cache["k"].max(1)

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    graph, warnings = examine(forward, side)
    assert [warning.code for warning in warnings] == ["overwritten-field"]
    assert [write.value.op.name for write in graph.field_writes] == ["Max"]


def test_a_field_that_is_its_own_operand_is_no_loss_of_a_value() -> None:
    def side(cache: Any, loc: Any, ctx: Any) -> None:
        centroids = cache["centroids"]
        cache_ops.Mean(dim=1)(cache["k"], centroids, loc=loc, ctx=ctx)
        cache_ops.Relu()(centroids, centroids, loc=loc, ctx=ctx)
        cache_ops.Multiply()(centroids, centroids, centroids, loc=loc, ctx=ctx)

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    graph, warnings = examine(forward, side)
    assert warnings == ()
    (write,) = graph.field_writes
    found, node = [], write.value
    while node.inputs:
        found.append(node.op.name)
        node = node.inputs[0]
    assert found == ["Multiply", "Cast", "Relu", "Cast", "Mean"]


def test_a_logarithm_of_scores_that_may_be_negative_does_matter() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).log().topk())

    def positive(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).abs().log().topk())

    assert codes(forward) == []
    assert codes(positive) == ["order-kept"]


def test_ready_flows_have_no_warning_but_the_one_that_is_true() -> None:
    flows = {name: registry.get(name) for name in registry.list_keys()}
    found = {row.name: row.warnings for row in check_flows(flows) if row.warnings}
    assert list(found) == ["centered_block_sparse_attention"]  # subtracts one number from all pages
    assert [warning.code for warning in found.popitem()[1]] == ["order-kept"]


@pytest.mark.parametrize("kind", ["Sigmoid", "Silu"])
def test_defaults_that_are_not_the_usual_function_are_told(kind: str) -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        gate = getattr(indexer, kind)()(q.mean(1).mean(2), ctx=ctx)
        o.select((score(q, cache) * gate).topk())

    assert codes(forward) == ["unusual-default"]
