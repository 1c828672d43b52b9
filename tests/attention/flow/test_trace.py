from typing import Any

import numpy as np
import pytest

from tests.attention.flow.making import GEOMETRY, examine, flow_of, score
from tilewright.attention import cache as cache_ops
from tilewright.attention import indexer
from tilewright.attention.abs import BranchSpec, Parameter
from tilewright.attention.flow import FieldSpec, trace_flow, vFlow
from tilewright.attention.graph import (
    DType,
    Geometry,
    Inherit,
    Side,
    graph_hash,
    graph_text,
)
from tilewright.attention.ops import linear, reduce
from tilewright.attention.ops.leaf import Constant, FieldRead, StateRead
from tilewright.attention.passes import optimize_graph
from tilewright.errors import (
    FieldError,
    FlowError,
    FlowInitError,
    ForeignCallError,
    OperandError,
    StateError,
    TerminalError,
)


def test_one_op_object_called_twice_makes_two_values() -> None:
    gemm = indexer.GeMM()

    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        one = gemm(q.mean(1), cache["centroids"], ctx=ctx)
        other = gemm(q.max(1), cache["centroids"], ctx=ctx)
        o.select((one + other).topk())

    graph = examine(forward).graph
    products = [node for node in graph.nodes(Side.INDEXER) if isinstance(node.op, linear.GeMM)]
    assert len(products) == 2
    assert products[0].inputs[0] is not products[1].inputs[0]


def test_op_objects_and_infix_forms_have_the_same_meaning() -> None:
    def objects(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        mean = indexer.Mean(dim=1)(q, ctx=ctx)
        indexer.topK()(indexer.GeMM()(mean, cache["centroids"], ctx=ctx), o, ctx=ctx)

    def infix(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select((cache["centroids"] @ q.mean(1).T).topk())

    graphs = [optimize_graph(examine(forward).graph) for forward in (objects, infix)]
    assert graph_hash(graphs[0]) == graph_hash(graphs[1])


def test_every_node_knows_the_line_that_made_it() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    graph = examine(forward).graph
    nodes = [node for side in Side for node in graph.nodes(side) if node.op.name != "Input"]
    assert all(node.source.startswith(("test_trace.py:", "making.py:")) for node in nodes)


def test_a_saved_field_is_state_and_its_reads_are_those_of_the_last_step() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        now = 0.5 * cache["running"] + score(q, cache)
        cache["running"] = now
        o.select((now + cache["running"]).topk())

    fields = {"centroids": (1, 16), "running": (1, 1)}
    graph = examine(forward, fields=fields).graph
    reads = [node for node in graph.nodes(Side.INDEXER) if isinstance(node.op, StateRead)]
    assert [state.name for state in graph.states] == ["running"]
    assert len(reads) == 1  # before and after the write in the text: the same value
    assert "running" not in [field.name for field in graph.fields]


def test_a_constant_fill_is_the_initial_value_of_a_state() -> None:
    def side(cache: Any, loc: Any, ctx: Any) -> None:
        cache["centroids"] = cache["k"].mean(1)
        cache_ops.Fill(-3.0)(cache["running"], loc=loc, ctx=ctx)

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        cache["running"] = cache["running"].maximum(score(q, cache))
        o.select(score(q, cache).topk())

    graph = examine(forward, side, fields={"centroids": (1, 16), "running": (1, 1)}).graph
    assert graph.states[0].initial == -3.0
    assert [write.target for write in graph.field_writes] == ["centroids"]


def test_a_computed_start_of_a_state_stays_a_write() -> None:
    def side(cache: Any, _loc: Any, _ctx: Any) -> None:
        cache["centroids"] = cache["k"].mean(1)
        cache["running"] = cache["k"].l2norm(2).mean(1)

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        cache["running"] = cache["running"] * 0.5
        o.select(score(q, cache).topk())

    graph = examine(forward, side, fields={"centroids": (1, 16), "running": (1, 1)}).graph
    assert {write.target for write in graph.field_writes} == {"centroids", "running"}


def test_a_field_spec_declares_element_type_initial_value_and_inheritance() -> None:
    fields = {
        "centroids": (1, 16),
        "count": FieldSpec((1, 1), dtype="int32", initial=7, inherit="snapshot"),
    }

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        cache["count"] = cache["count"] + 1
        o.select(score(q, cache).topk())

    (state,) = examine(forward, fields=fields).graph.states
    assert (state.type.dtype, state.initial, state.inherit) == (
        DType.INT32,
        7.0,
        Inherit.SNAPSHOT,
    )


def test_reading_back_a_field_on_the_cache_side_gives_it_as_it_is_stored() -> None:
    def side(cache: Any, _loc: Any, _ctx: Any) -> None:
        cache["centroids"] = cache["k"].mean(1)
        cache["norm"] = cache["centroids"].l2norm(2)

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select((score(q, cache) * cache["norm"]).topk())

    graph = examine(forward, side, fields={"centroids": (1, 16), "norm": (1, 1)}).graph
    assert 'Cast<dtype="bfloat16">' in graph_text(graph)


def test_parameters_are_named_after_their_attributes_and_keep_their_values() -> None:
    class Learned(vFlow):
        def __init__(self) -> None:
            self.weights = Parameter(np.arange(32.0).reshape(2, 16))

        def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
            projected = indexer.GeMM()(q, self.weights, ctx=ctx)
            o.select((cache["k"].mean(1).max(2) * projected.sum(1).sum(2)).topk())

    (parameter,) = trace_flow(Learned(), GEOMETRY).parameters
    assert parameter.name == "param.weights"
    np.testing.assert_array_equal(parameter.values, np.arange(32.0).reshape(2, 16))


def test_inputs_beside_the_query_can_be_declared() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        o.select((score(q, cache) * ctx.inputs["weight"]).topk())

    graph = examine(forward, create_inputs=lambda _self: {"weight": (1, 1)}).graph
    assert [name for name, _ in graph.inputs] == ["q", "weight"]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda _self: 1 // 0, "create_inputs.*found ZeroDivisionError"),
        (lambda _self: None, "create_inputs: found None"),
        (lambda _self: {"weight": 1}, "a shape of rows and columns"),
        (lambda _self: {"weight": (1, 0)}, "a shape of rows and columns"),
        (lambda _self: {3: (1, 1)}, "a shape of rows and columns"),
    ],
)
def test_inputs_that_are_no_shapes_are_refused_with_the_method(made: Any, words: str) -> None:
    with pytest.raises(FlowError, match=words):
        examine(lambda _q, _o, _cache, _ctx: None, create_inputs=made)


def test_gated_branches_and_estimates_are_part_of_the_output() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        chosen = score(q, cache).topk()
        logits = cache["centroids"] @ q.T
        exact = BranchSpec(chosen, gate=q.mean(2).sigmoid())
        summary = BranchSpec(logits=logits, values=cache["centroids"].cast("float32"))
        o.combine([exact, summary])

    exact, summary = examine(forward).graph.output.branches
    assert exact.gate is not None
    assert exact.estimate is None
    assert summary.selection is None
    assert summary.estimate is not None
    assert summary.estimate.over == "all"


def test_a_kept_selection_brings_its_own_state() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        o.select(indexer.every(4)(score(q, cache).topk(), ctx=ctx))

    (state,) = examine(forward).graph.states
    assert state.type.dtype is DType.BOOL


def test_streams_combine_in_any_number() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        streams = [indexer.TopK(k)(score(q, cache), ctx=ctx) for k in (1, 2, 3)]
        window = indexer.recent(2)(ctx=ctx)
        both = indexer.Intersection()(*streams, ctx=ctx)
        indexer.Union()(both, window, indexer.pages(3, 5)(ctx=ctx), o, ctx=ctx)

    examined = examine(forward)
    assert examined.warnings == ()
    (branch,) = examined.graph.output.branches
    assert branch.selection is not None
    assert branch.selection.op.name == "Union"


# -- what is wrong, and what is said about it


def raises(kind: type[FlowError], match: str, indexer_: Any, **more: Any) -> FlowError:
    with pytest.raises(kind, match=match) as caught:
        examine(indexer_, **more)
    assert caught.value.flow == "made"
    return caught.value


def test_a_flow_without_a_terminal_is_refused() -> None:
    error = raises(TerminalError, "found no terminal, expected exactly one", lambda *_: None)
    assert error.method == "forward_indexer"


def test_a_second_terminal_is_refused_and_names_the_first() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        indexer.topK()(score(q, cache), o, ctx=ctx)
        indexer.topK()(score(q, cache), o, ctx=ctx)

    error = raises(TerminalError, r"after the one at test_trace\.py:\d+", forward)
    assert error.source.startswith("test_trace.py:")


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    def forward(_q: Any, _o: Any, cache: Any, _ctx: Any) -> None:
        cache["centroid"]

    raises(FieldError, "found field 'centroid', .* did you mean 'centroids'", forward)


def test_a_reshape_that_does_not_fit_names_op_operand_and_sizes() -> None:
    def forward(q: Any, _o: Any, _cache: Any, ctx: Any) -> None:
        indexer.Reshape(-1, 3, 5)(q, ctx=ctx)

    match = r"Reshape operand x: found BATCHED bfloat16 \[1, 4, 16\], expected 3 x 5 = 15 elements"
    error = raises(OperandError, match, forward)
    assert (error.op, error.operand, error.method) == ("Reshape", "x", "forward_indexer")


def test_a_state_written_twice_is_refused_and_names_the_first_line() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        save = indexer.Save()
        save(score(q, cache), cache["running"], ctx=ctx)
        save(score(q, cache), cache["running"], ctx=ctx)
        o.select(score(q, cache).topk())

    fields = {"centroids": (1, 16), "running": (1, 1)}
    raises(StateError, r"found a second Save, after the one at test_trace", forward, fields=fields)


def test_saving_a_value_per_row_is_refused() -> None:
    def forward(q: Any, _o: Any, cache: Any, _ctx: Any) -> None:
        cache["running"] = q.mean(1).mean(2)

    fields = {"centroids": (1, 16), "running": (1, 1)}
    raises(StateError, "expected RAGGED, a value per page", forward, fields=fields)


@pytest.mark.parametrize("name", ["k", "v"])
def test_keys_and_values_cannot_be_saved(name: str) -> None:
    def forward(q: Any, _o: Any, cache: Any, ctx: Any) -> None:
        indexer.Save()(score(q, cache), cache[name], ctx=ctx)

    raises(StateError, "keys and values belong to the model", forward)


def test_a_value_of_another_method_is_refused() -> None:
    kept: list[Any] = []

    def side(cache: Any, _loc: Any, _ctx: Any) -> None:
        cache["centroids"] = cache["k"].mean(1)
        kept.append(cache["k"].mean(1))

    def forward(q: Any, _o: Any, _cache: Any, _ctx: Any) -> None:
        _ = q + kept[0]

    raises(ForeignCallError, "a value of another method", forward, cache=side)


def test_scores_of_all_heads_need_a_reduction_or_a_wish_for_a_selection_per_head() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select((q @ cache["centroids"].T).T.topk())

    raises(OperandError, r"expected inner shape \(1, 1\); reduce over query heads first", forward)


def test_a_field_cannot_be_selected_from_before_it_is_loaded() -> None:
    def forward(_q: Any, o: Any, cache: Any, ctx: Any) -> None:
        indexer.topK()(cache["score"], o, ctx=ctx)

    raises(
        OperandError,
        r"lift the field with Load\(\)",
        forward,
        fields={"score": (1, 1)},
        cache=lambda *_: None,
    )


def test_an_op_over_pages_is_refused_on_the_cache_side() -> None:
    def side(cache: Any, loc: Any, ctx: Any) -> None:
        cache_ops.Mean(dim=0)(cache["k"], None, loc=loc, ctx=ctx)

    raises(OperandError, "dim=0 on the cache side", lambda *_: None, cache=side)


def test_a_field_is_not_read_before_it_is_written_on_the_cache_side() -> None:
    def side(cache: Any, _loc: Any, _ctx: Any) -> None:
        cache["centroids"] = cache["centroids"] * 0.5 + cache["k"].mean(1)

    raises(FieldError, "a read before anything was written", lambda *_: None, cache=side)


def test_code_that_raises_is_told_with_its_line() -> None:
    def forward(_q: Any, _o: Any, _cache: Any, _ctx: Any) -> None:
        _ = 1 / 0

    error = raises(FlowError, "found ZeroDivisionError: division by zero", forward)
    assert error.source.startswith("test_trace.py:")
    assert error.method == "forward_indexer"


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (["centroids"], "found a list"),
        ({"k": (1, 16)}, "found a field 'k'"),
        ({"latent": (1, 16)}, "found a field 'latent'"),
        ({"c": (1, 0)}, r"found \(1, 0\)"),
        ({"c": (1, 2, 3)}, r"found \(1, 2, 3\)"),
        ({"two words": (1, 1)}, "found the name 'two words'"),
    ],
)
def test_what_create_cache_returns_is_checked(declared: Any, found: str) -> None:
    with pytest.raises(FlowError, match=found):
        trace_flow(flow_of(lambda *_: None, fields=declared), GEOMETRY)


def test_a_geometry_of_the_other_kind_is_refused() -> None:
    latent = Geometry.mla(page_size=8, kv_lora_rank=12, qk_rope_head_dim=4, query_heads=2)
    with pytest.raises(FlowInitError, match="found a geometry of kind mla, expected kind gqa"):
        trace_flow(flow_of(lambda *_: None), latent)


def test_a_page_size_of_any_number_does() -> None:
    """Only kernels need powers of two; a flow does not."""
    odd = Geometry.gqa(page_size=7, head_dim=16, query_heads=3)

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    graph = trace_flow(flow_of(forward), odd)
    assert graph.geometry.page_size == 7


def test_a_mean_over_tokens_is_a_reduction_over_the_token_axis() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select((cache["k"] @ q.T).max(1).max(2).topk())

    graph = examine(forward).graph
    reduced = [n for n in graph.nodes(Side.INDEXER) if isinstance(n.op, reduce.Max)]
    assert reduced[0].inputs[0].type.token_axes == (1,)
    assert reduced[0].type.token_axes == ()


def test_reads_of_one_field_are_one_node() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select((score(q, cache) + score(q, cache)).topk())

    nodes = list(examine(forward).graph.nodes(Side.INDEXER))
    assert sum(isinstance(node.op, FieldRead) for node in nodes) == 1
    assert not any(isinstance(node.op, Constant) for node in nodes)
