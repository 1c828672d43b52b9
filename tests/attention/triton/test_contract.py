"""The contract of the generator: all ops, all flows, and one table of what is refused."""

from dataclasses import replace

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton import test_ops, test_rows
from tests.attention.triton.pair import geometry_of, graph_of
from tilewright.attention.codegen import compile_graph
from tilewright.attention.codegen.coverage import REFUSALS, Refusal
from tilewright.attention.codegen.expression.elementwise import ELEMENTWISE
from tilewright.attention.codegen.expression.inner import INNER
from tilewright.attention.codegen.expression.side import INDEXER_POSITIONS
from tilewright.attention.codegen.expression.weighted import WEIGHTED
from tilewright.attention.codegen.kernels.row import ROW_OPS
from tilewright.attention.flow import registry
from tilewright.attention.graph import (
    Branch,
    DType,
    Estimate,
    FlowKind,
    Graph,
    Op,
    Output,
    Scope,
    Side,
    Types,
    ValueType,
    make_node,
)
from tilewright.attention.ops import leaf, selection
from tilewright.attention.ops.table import OPS
from tilewright.errors import CodegenError
from tilewright.validation.vortex.flows import FLOWS
from tilewright.validation.vortex.rules import load_graph

LOADED: tuple[type[Op], ...] = (
    leaf.Input,
    leaf.FieldRead,
    leaf.StateRead,
    leaf.ParameterRead,
    leaf.AttentionMass,
    leaf.PromptMass,
)
SELECTED: tuple[type[Op], ...] = (
    selection.TopK,
    selection.ApproxTopK,
    selection.TopP,
    selection.Threshold,
)


def quest() -> Graph:
    return graph_of(registry.get("quest")(), geometry_of(FlowKind.GQA, DType.FLOAT32))


def test_every_op_of_the_table_is_emitted() -> None:
    emitted = {*LOADED, *SELECTED, *WEIGHTED, *ELEMENTWISE, *INNER, *INDEXER_POSITIONS, *ROW_OPS}
    assert {op.__name__ for op in emitted} == set(OPS)


def test_every_op_of_the_table_is_held_to_the_reference() -> None:
    graphs = [test_ops.probe_of(0), *(test_rows.probe(part) for part in range(3))]
    seen = {node.op.name for graph in graphs for side in Side for node in graph.nodes(side)}
    assert seen == set(OPS)


def refused(found: str) -> Graph:
    """A graph with what a refusal is about."""
    graph = quest()
    if found == "estimates alone":
        retro = registry.get("retro_infer")()
        graph = graph_of(retro, geometry_of(FlowKind.GQA, DType.FLOAT32))
        (branch,) = graph.output.branches
        assert isinstance(branch.estimate, Estimate)
        return replace(graph, output=Output((Branch(None, None, branch.estimate),)))
    if found == "a request cache":
        return load_graph(FLOWS["VX6 request cache"])
    assert found == "keys and values in whole numbers"
    flow = registry.get("streaming_llm")()
    return graph_of(flow, replace(graph.geometry, kv_dtype=DType.INT4))


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda item: str(item.found))
def test_what_is_refused_is_named_with_what_to_do(refusal: Refusal) -> None:
    with pytest.raises(CodegenError) as caught:
        compile_graph(refused(refusal.found))
    assert caught.value.args[1:] == (refusal.found, refusal.expected, refusal.fix)


def test_no_refusal_is_about_a_ready_flow() -> None:
    for name in registry.list_keys():
        flow = registry.get(name)()
        graph = graph_of(flow, geometry_of(flow.kind, DType.FLOAT16, page_size=16, width=64), name)
        assert not any(refusal.holds(graph) for refusal in REFUSALS), name


class Strange(Op):
    """An op of somebody's own."""

    operands = ("x",)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        return inputs[0]


def test_an_op_of_ones_own_is_refused_with_its_line() -> None:
    graph = quest()
    (branch,) = graph.output.branches
    assert branch.selection is not None
    scope = graph.scope(Side.INDEXER)
    scores = make_node(Strange(), branch.selection.inputs, scope, "mine.py:7")
    chosen = make_node(branch.selection.op, (scores,), scope, "mine.py:8")
    with pytest.raises(CodegenError, match=r"Strange at mine\.py:7: found an op without a kernel"):
        compile_graph(replace(graph, output=Output((Branch(chosen),))))
