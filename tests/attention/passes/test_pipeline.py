"""Every pass keeps what a graph means, and what it is for shows in its golden text."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.flows.case import Case, request_of
from tests.attention.flows.cases import CASES
from tests.attention.graph.random_graphs import GEOMETRY, graphs
from tests.attention.oracle_ops.graph import HeadStep, Request, run_graph
from tilewright.attention import indexer
from tilewright.attention.abs import Parameter
from tilewright.attention.flow import make_flow, trace_flow, vFlow
from tilewright.attention.flow.registry import get
from tilewright.attention.graph import (
    Branch,
    Geometry,
    Graph,
    Node,
    Output,
    Side,
    graph_hash,
    graph_text,
    verify_graph,
)
from tilewright.attention.passes import PASSES, Pass, optimize_graph, run_pass
from tilewright.errors import GraphError, InternalError

assert settings.default is not None
FEWER = settings(
    max_examples=settings.default.max_examples // 5,
    phases=(Phase.explicit, Phase.generate),  # a slow oracle: the graph is noted instead of shrunk
)
BY_NAME = {item.name: item for item in PASSES}


def request_for(seed: int) -> Request:
    """Small whole numbers: products and sums are exact, so passes have no rounding to blame."""
    generator = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return generator.integers(-3, 4, shape).astype(np.float64)

    heads, tokens, steps = 1, 29, 3
    return Request(
        keys=drawn(heads, tokens, GEOMETRY.key_dim),
        values=drawn(heads, tokens, GEOMETRY.value_dim),
        queries=drawn(heads, steps, GEOMETRY.query_heads, GEOMETRY.key_dim),
        prompt_tokens=tokens - steps,
        budget=2,
    )


def outcomes(graph: Graph, request: Request) -> list[HeadStep]:
    return [head for heads in run_graph(graph, request) for head in heads]


def assert_same_meaning(before: Graph, after: Graph, request: Request) -> None:
    note(graph_text(before))
    note(graph_text(after))
    assert_equal_steps(before, after, request)


def assert_equal_steps(before: Graph, after: Graph, request: Request) -> None:
    for one, other in zip(outcomes(before, request), outcomes(after, request), strict=True):
        assert one.pages == other.pages
        np.testing.assert_allclose(other.out, one.out, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BY_NAME)
@FEWER
@given(graph=graphs(), seed=st.integers(0, 5))
def test_a_pass_keeps_what_any_graph_means(name: str, graph: Graph, seed: int) -> None:
    after = run_pass(BY_NAME[name], graph)
    assert_same_meaning(graph, after, request_for(seed))


@FEWER
@given(graph=graphs(), seed=st.integers(0, 5))
def test_all_passes_together_keep_what_any_graph_means(graph: Graph, seed: int) -> None:
    assert_same_meaning(graph, optimize_graph(graph), request_for(seed))


@FEWER
@given(graph=graphs())
def test_optimizing_twice_changes_nothing_more(graph: Graph) -> None:
    once = optimize_graph(graph)
    assert graph_hash(optimize_graph(once)) == graph_hash(once)


@pytest.mark.parametrize("case", [case for case in CASES if case.block_size > 1], ids=str)
def test_the_passes_keep_what_a_ready_flow_means(case: Case) -> None:
    graph = trace_flow(case.build(), case.geometry)
    request = request_of(case, seed=5)
    request = replace(request, queries=request.queries[:, :1])
    assert_equal_steps(graph, optimize_graph(graph), request)


def test_a_pass_that_breaks_a_graph_is_a_bug_of_the_pass() -> None:
    broken = Pass("breaks", lambda graph: replace(graph, output=Output(())), exact=True)
    with pytest.raises(InternalError, match=r"pass breaks: .*found no branch"):
        run_pass(broken, ready("quest"))


def test_a_graph_that_was_broken_before_is_no_bug_of_the_pass() -> None:
    wrong = replace(ready("quest"), output=Output((Branch(None),)))
    with pytest.raises(GraphError):
        run_pass(PASSES[0], wrong)


def ready(name: str) -> Graph:
    geometry = Geometry.gqa(page_size=32, head_dim=16, query_heads=4)
    return trace_flow(make_flow(name, get(name)), geometry, name=name)


def ops_of(graph: Graph, side: Side = Side.INDEXER) -> list[str]:
    return [node.op.name for node in graph.nodes(side)]


@pytest.mark.parametrize(
    "name",
    [
        "gqa_quest_sparse_attention",
        "lserve_sparse_attention",
        "masked_quest_sparse_attention",
        "centered_block_sparse_attention",
        "running_avg_block_sparse",
    ],
)
def test_an_optimized_graph(name: str, check_golden: Callable[[str], None]) -> None:
    check_golden(graph_text(optimize_graph(ready(name)), sources=False))


@pytest.mark.parametrize(
    "name", ["quest", "quest_group_sum", "quest_mean_query", "lserve_sparse_attention"]
)
def test_the_bound_of_quest_becomes_two_products(name: str) -> None:
    before, after = ready(name), optimize_graph(ready(name))
    assert "Maximum" in ops_of(before)
    assert "Maximum" not in ops_of(after)
    assert ops_of(after).count("GeMM") == 2


def test_a_bound_of_fields_whose_order_is_not_proved_stays() -> None:
    graph = ready("quest")
    writes = tuple(
        replace(write, value=graph.field_writes[0].value) for write in graph.field_writes
    )
    unproved = replace(graph, field_writes=writes)
    verify_graph(unproved)
    assert "Maximum" in ops_of(optimize_graph(unproved))


def test_a_bound_of_fields_with_other_starting_values_stays() -> None:
    graph = ready("quest")
    fields = tuple(
        replace(field, initial=5.0) if field.name == "min" else field for field in graph.fields
    )
    assert "Maximum" in ops_of(optimize_graph(replace(graph, fields=fields)))


def test_a_mean_over_heads_is_taken_of_the_query() -> None:
    after = optimize_graph(ready("centered_block_sparse_attention"))
    products = [node for node in after.nodes(Side.INDEXER) if node.op.name == "GeMM"]
    assert [node.type.shape for node in products] == [(1, 1)]


def test_a_product_with_weights_of_each_head_is_left_alone() -> None:
    class ByHead(vFlow):
        def __init__(self) -> None:
            self.weights = Parameter(np.ones((1, 2, 3, 16)))  # layers, heads, rows, width

        def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
            projected = indexer.GeMM()(q, self.weights, ctx=ctx)  # [1, 6, 2]
            o.select((cache["k"].mean(1).max(2) * projected.sum(2).sum(1)).topk())

    graph = trace_flow(ByHead(), Geometry.gqa(page_size=4, head_dim=16, query_heads=4))
    assert ops_of(optimize_graph(graph)).count("GeMM") == 1


def test_equal_values_are_computed_once() -> None:
    graph = ready("quest")
    (branch,) = graph.output.branches
    assert branch.selection is not None
    copy = duplicate(branch.selection)
    doubled = replace(graph, output=Output((Branch(branch.selection), Branch(copy))))
    after = run_pass(BY_NAME["common_subexpression"], doubled)
    first, second = after.output.branches
    assert first.selection is second.selection


def duplicate(node: Node) -> Node:
    return replace(node, inputs=tuple(duplicate(item) for item in node.inputs))


def test_a_summary_that_nobody_reads_is_dropped_and_state_is_not() -> None:
    graph = ready("running_avg_block_sparse")
    (branch,) = ready("streaming_llm").output.branches
    blind = replace(graph, output=Output((branch,)))
    after = run_pass(BY_NAME["dead_code"], blind)
    assert [state.name for state in after.states] == ["running_score"]  # a Save is a root
    unread = replace(ready("quest"), output=Output((branch,)))
    assert [field.name for field in run_pass(BY_NAME["dead_code"], unread).fields] == ["k", "v"]
    assert run_pass(BY_NAME["dead_code"], unread).field_writes == ()


def test_types_follow_from_a_changed_geometry() -> None:
    graph = ready("quest")
    wider = replace(graph.geometry, query_heads=8)
    kind = replace(dict(graph.inputs)["q"], shape=(8, 16))
    changed = replace(graph, geometry=wider, inputs=(("q", kind),))
    after = BY_NAME["infer_types"].run(changed)
    verify_graph(after)
    assert graph_hash(after) != graph_hash(graph)
