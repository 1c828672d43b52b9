"""Random values of any shape, per row and per page, on both sides: kernels as the reference."""

from dataclasses import replace
from itertools import count

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.attention.triton.pair import Both, Rows, geometry_of, graph_of
from tilewright.attention.codegen import Tiling, compile_graph
from tilewright.attention.flow import registry
from tilewright.attention.graph import (
    FORMAT,
    DType,
    Field,
    FieldWrite,
    FlowKind,
    Graph,
    Leading,
    Node,
    Op,
    Scope,
    Side,
    Span,
    StateVar,
    StateWrite,
    ValueType,
    make_node,
    verify_graph,
)
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
    layout,
    leaf,
    linear,
    page_axis,
    position,
    reduce,
    selection,
    unary,
)
from tilewright.attention.ops.page_axis import Kind
from tilewright.attention.planner import DefaultBudget, StateAdvance
from tilewright.errors import FlowError

LARGEST = 512  # elements of a value a page

TWO = DefaultBudget(topk=2)

small = st.integers(0, 4)
sizes = st.integers(1, 3)
dims = st.integers(1, 2)
any_dim = st.integers(0, 2)
spans = st.sampled_from(list(Span))
kinds = st.sampled_from(list(Kind))
factors = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0])

UNARY = st.one_of(
    st.builds(unary.Add_Mul, factors, factors),
    st.builds(unary.Abs, factors, factors),
    st.builds(unary.Relu, factors, factors),
    st.builds(unary.Clamp, st.just(-1.0), st.just(2.0)),
    st.builds(unary.Cast, st.sampled_from(list(DType)).filter(lambda x: x is not DType.BFLOAT16)),
    st.builds(layout.Transpose),
    st.builds(lambda start, size, dim: layout.Slice(start, start + size, dim), small, sizes, dims),
    st.builds(
        lambda start, size, dim: layout.MaskSlice(start, start + size, dim, 0.5, -1.0),
        *(small, sizes, dims),
    ),
    st.builds(layout.Reshape, st.integers(1, 12), st.integers(1, 12)),
    st.sampled_from([reduce.Sum, reduce.Mean, reduce.Max, reduce.Min, reduce.L2Norm]).flatmap(
        lambda kind: st.builds(kind, any_dim, spans)
    ),
    st.builds(reduce.ArgMax, any_dim, spans),
    st.builds(reduce.ArgTop, st.integers(1, 3), dims),
    st.sampled_from([reduce.SumInterleave, reduce.MaxInterleave]).flatmap(
        lambda kind: st.builds(kind, dims, st.integers(1, 5))
    ),
    st.builds(page_axis.Softmax, any_dim, factors, spans),
    st.builds(page_axis.CumSum, any_dim, st.booleans(), spans),
    st.builds(page_axis.PoolPages, kinds, st.integers(0, 2), st.integers(0, 2), spans),
    st.builds(page_axis.ShiftPages, st.integers(-3, 3), st.just(1.0)),
    st.builds(page_axis.AcrossHeads, kinds),
    st.builds(selection.TopP, st.sampled_from([0.3, 0.8, 1.0]), small),
    st.builds(selection.TopK, st.integers(1, 4)),
    st.builds(selection.Complement),
    st.builds(selection.SelectedTokens),
    st.builds(unary.PopCount),
)
BINARY = st.one_of(
    st.sampled_from(
        [
            binary.Add(),
            binary.Multiply(),
            binary.Maximum(),
            binary.Remainder(),
            binary.FloorDivide(),
            compare.Less(),
            compare.Equal(),
            linear.GeMM(),
            layout.Rope(64.0),
            layout.Rope(64.0, interleaved=True),
            selection.Union(),
        ]
    ),
    st.builds(layout.Concat, dims),
    st.builds(choose.Gather, any_dim),
    st.builds(linear.Kron, st.sampled_from([(1,), (2,), (1, 2)])),
)


def _grown(draw: DrawFn, values: list[Node], scope: Scope, length: int) -> list[Node]:
    """Up to so many more values; ops that do not fit are left out."""
    for _ in range(length):
        op: Op = draw(UNARY | BINARY)
        recent = st.sampled_from(values[-4:]) | st.sampled_from(values)
        inputs = tuple(draw(recent) for _ in op.operands)
        try:
            node = make_node(op, inputs, scope, "here")
        except FlowError:
            continue
        if node.type.num_elements <= LARGEST:
            values.append(_bounded(node, scope))
    return values


def _bounded(node: Node, scope: Scope) -> Node:
    """Numbers that stay small, in steps that add up without rounding."""
    if node.type.dtype is not node.type.dtype.computed:
        node = make_node(unary.Cast(node.type.dtype.computed), (node,), scope, "here")
    if not node.type.dtype.is_float:
        return node
    held = make_node(unary.Clamp(-8.0, 8.0), (node,), scope, "here")
    whole = make_node(unary.Floor(), (make_node(_TIMES_16, (held,), scope, ""),), scope, "here")
    return make_node(unary.Add_Mul(0.0, 0.0625), (whole,), scope, "here")


_TIMES_16 = unary.Add_Mul(2.0**-11, 16.0)  # no value is just below a step


@st.composite
def graphs(draw: DrawFn) -> Graph:
    """Every value of the cache side is a field, every value of the indexer side a state."""
    shape = {"page_size": draw(st.sampled_from([3, 4])), "width": draw(st.sampled_from([6, 8]))}
    flow = registry.get("streaming_llm")()
    graph = graph_of(flow, geometry_of(FlowKind.GQA, DType.FLOAT32, query_heads=3, **shape))
    cache, indexer = graph.scope(Side.CACHE), graph.scope(Side.INDEXER)
    leaves = [make_node(leaf.FieldRead(name), (), cache, "") for name in ("k", "v")]
    kept = _grown(draw, list(leaves), cache, draw(st.integers(3, 8)))[len(leaves) :]
    numbers = count()
    fields = {f"field_{next(numbers)}": node for node in kept}
    of_rows: list[Op] = [leaf.Input("q"), leaf.FieldRead("k"), position.PageIndex()]
    values = [make_node(op, (), indexer, "") for op in of_rows]
    values = _grown(draw, values, indexer, draw(st.integers(4, 12)))[len(of_rows) :]
    states = {f"state_{next(numbers)}": node for node in values}
    graph = replace(
        graph,
        fields=(*graph.fields, *(Field(name, _type(node)) for name, node in fields.items())),
        states=tuple(StateVar(name, _type(node)) for name, node in states.items()),
        field_writes=tuple(FieldWrite(name, node) for name, node in fields.items()),
        state_writes=tuple(StateWrite(name, node) for name, node in states.items()),
    )
    verify_graph(graph)
    return graph


def _type(node: Node) -> ValueType:
    return ValueType(FORMAT.PAGED, Leading.PAGES, node.type.shape, node.type.dtype.computed)


@given(graph=graphs(), seed=st.integers(0, 99))
@settings(max_examples=3)
def test_random_values_are_those_of_the_reference(graph: Graph, seed: int) -> None:
    rows = Rows(
        tokens=(5 * graph.geometry.page_size + 2,),
        kv_heads=2,
        seed=seed,
        budget=TWO,
        state_advance=StateAdvance.EVERY_BLOCK,
    )
    tiling = Tiling(page_tile=4, row_tile=4, attend_tokens=16, part_pages=3)
    both = Both(graph, rows, compile_graph(graph, tiling))
    found = both.attend(both.begin()).states | both.completed()
    for name, (expected, kernel) in found.items():
        actual, wanted = (np.asarray(item, dtype=np.float64) for item in (kernel, expected))
        np.testing.assert_array_equal(actual, wanted, err_msg=name)
