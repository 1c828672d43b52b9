"""What kernels of ops over all pages are told to move: read off their loops."""

from dataclasses import replace

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton.pair import geometry_of, graph_of
from tilewright.attention.codegen import Traffic, compile_graph
from tilewright.attention.flow import registry
from tilewright.attention.graph import (
    FORMAT,
    DType,
    FlowKind,
    Leading,
    Op,
    Side,
    Span,
    StateVar,
    StateWrite,
    ValueType,
    make_node,
)
from tilewright.attention.ops import leaf, page_axis, reduce
from tilewright.attention.ops.page_axis import Kind

KIND = ValueType(FORMAT.PAGED, Leading.PAGES, (1, 1), DType.FLOAT32)


def traffic_of(op: Op) -> Traffic:
    """Of the op on one number a page."""
    graph = graph_of(registry.get("streaming_llm")(), geometry_of(FlowKind.GQA, DType.FLOAT32))
    scope = graph.scope(Side.INDEXER)
    value = make_node(leaf.FieldRead("k"), (), scope, "")
    for each in (reduce.Sum(1), reduce.Sum(2), op):
        value = make_node(each, (value,), scope, "")
    graph = replace(
        graph, states=(StateVar("kept", KIND),), state_writes=(StateWrite("kept", value),)
    )
    (kernel,) = (
        item for item in compile_graph(graph).step if item.name.startswith(op.name.lower())
    )
    (traffic,) = kernel.traffic
    return traffic


@pytest.mark.parametrize(
    ("op", "page_bytes", "head_bytes"),
    [
        (page_axis.ShiftPages(1), 4 + 4, 0),
        (page_axis.Softmax(0), 3 * 4 + 4, 0),  # the largest, the sum, the shares
        (page_axis.PoolPages(Kind.MAX, 1, 2), 4 * 4 + 4, 0),  # each page of the window
        (page_axis.CumSum(0, span=Span.MIDDLE), 4 + 4, 0),  # pages outside are few
        (page_axis.AcrossHeads(Kind.SUM), 4, 4),  # one load for each head
    ],
)
def test_loads_count_as_often_as_their_loop_goes_round(
    op: Op, page_bytes: int, head_bytes: int
) -> None:
    traffic = traffic_of(op)
    assert (traffic.page_bytes, traffic.head_bytes) == (page_bytes, head_bytes)
