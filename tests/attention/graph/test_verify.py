from dataclasses import replace

import pytest
from hypothesis import given

from tests.attention.graph.random_graphs import GEOMETRY, VARIABLES, graphs
from tilewright.attention.graph import (
    Branch,
    DType,
    Estimate,
    Field,
    FieldWrite,
    Graph,
    Node,
    Op,
    Output,
    Scope,
    Side,
    StateVar,
    StateWrite,
    make_node,
    verify_graph,
)
from tilewright.attention.ops import reduce, unary
from tilewright.attention.ops.leaf import Constant, FieldRead, Input, ParameterRead, StateRead
from tilewright.attention.ops.position import PageIndex
from tilewright.attention.ops.selection import TopK
from tilewright.errors import GraphError

CACHE = Scope(Side.CACHE, GEOMETRY, VARIABLES)
SCOPE = Scope(Side.INDEXER, GEOMETRY, VARIABLES)


def node(op: Op, *inputs: Node, scope: Scope = SCOPE) -> Node:
    return make_node(op, inputs, scope, "flow.py:7")


SCORE = node(unary.Cast(DType.FLOAT32), node(PageIndex()))
CHOSEN = node(TopK(), SCORE)
MEAN = node(reduce.Mean(1), node(FieldRead("k"), scope=CACHE), scope=CACHE)
GRAPH = Graph(
    name="small",
    geometry=GEOMETRY,
    fields=tuple(Field(name, VARIABLES[name]) for name in ("k", "v", "high")),
    states=(StateVar("kept", VARIABLES["kept"]),),
    inputs=(("q", VARIABLES["q"]),),
    field_writes=(FieldWrite("high", MEAN),),
    state_writes=(StateWrite("kept", SCORE),),
    output=Output((Branch(CHOSEN),)),
)


def refused(graph: Graph, match: str) -> None:
    with pytest.raises(GraphError, match=match) as caught:
        verify_graph(graph)
    assert caught.value.where.startswith("graph 'small'")


def ending_in(*branches: Branch) -> Graph:
    return replace(GRAPH, output=Output(branches))


@given(graph=graphs())
def test_a_graph_that_was_built_by_the_rules_keeps_them(graph: Graph) -> None:
    verify_graph(graph)


def test_the_graph_that_is_broken_below_is_valid_before() -> None:
    verify_graph(GRAPH)


def test_a_type_that_the_op_would_not_infer_is_refused() -> None:
    wrong = replace(CHOSEN, type=replace(CHOSEN.type, shape=(1, 2)))
    match = r"indexer side, TopK at flow\.py:7: found the type RAGGED bool \[S, 1, 2\]"
    refused(ending_in(Branch(wrong)), match)


def test_operands_that_an_op_refuses_are_refused() -> None:
    wrong = Node(TopK(), (node(Input("q")),), CHOSEN.type, "flow.py:9")
    refused(ending_in(Branch(wrong)), r"TopK at flow\.py:9: found BATCHED")


def test_an_op_of_the_other_side_is_refused() -> None:
    kind = replace(MEAN.type)
    stray = Node(Input("q"), (), VARIABLES["q"], "flow.py:3")
    wrong = Node(reduce.Mean(1), (stray,), kind, "flow.py:3")
    graph = replace(GRAPH, field_writes=(FieldWrite("high", wrong),))
    refused(graph, "cache side, Input .* found use in the cache side")


@pytest.mark.parametrize(
    ("op", "known"),
    [
        (FieldRead("low"), "k, v, high"),
        (StateRead("high"), "kept"),
        (Input("k"), "q"),
        (ParameterRead("kept"), r"\(none\)"),
    ],
)
def test_a_read_of_a_variable_of_another_kind_is_refused(op: Op, known: str) -> None:
    wrong = Node(op, (), SCORE.type, "flow.py:4")
    graph = replace(GRAPH, state_writes=(StateWrite("kept", wrong),))
    refused(graph, f"found a read of .*, expected one of {known}")


def test_two_variables_of_one_name_are_refused() -> None:
    graph = replace(GRAPH, fields=(*GRAPH.fields, Field("kept", VARIABLES["kept"])))
    refused(graph, "found 2 variables named 'kept'")


def test_a_graph_without_keys_is_refused() -> None:
    refused(replace(GRAPH, fields=GRAPH.fields[1:]), "found no field k, expected fields k, v")


def test_a_second_write_is_refused() -> None:
    refused(replace(GRAPH, state_writes=GRAPH.state_writes * 2), "state 'kept': found 2 writes")
    refused(replace(GRAPH, field_writes=GRAPH.field_writes * 2), "field 'high': found 2 writes")


def test_a_state_without_a_write_is_refused() -> None:
    refused(replace(GRAPH, state_writes=()), "found no write to kept")


@pytest.mark.parametrize("target", ["k", "nothing"])
def test_a_write_to_what_is_no_field_of_the_flow_is_refused(target: str) -> None:
    graph = replace(GRAPH, field_writes=(FieldWrite(target, MEAN),))
    refused(graph, f"field '{target}': found a write")


def test_a_write_of_another_shape_is_refused_unless_it_is_one_number() -> None:
    graph = replace(GRAPH, state_writes=(StateWrite("kept", node(StateRead("kept"))),))
    verify_graph(graph)
    keys = node(FieldRead("high"))
    refused(
        replace(GRAPH, state_writes=(StateWrite("kept", keys),)), r"expected inner shape \(1, 1\)"
    )
    fill = node(Constant(2.0), scope=CACHE)
    verify_graph(replace(GRAPH, field_writes=(FieldWrite("high", fill),)))


def test_an_output_of_nothing_is_refused() -> None:
    refused(ending_in(), "output: found no branch")
    refused(ending_in(Branch(None)), "branch 0: found nothing to attend to")


def test_a_selection_that_is_no_bool_per_page_is_refused() -> None:
    refused(ending_in(Branch(SCORE)), "branch 0, selection: found RAGGED float32")


def test_a_gate_per_page_is_refused() -> None:
    refused(ending_in(Branch(CHOSEN, gate=SCORE)), r"gate: found RAGGED .*expected BATCHED")


def test_estimates_of_other_sizes_are_refused() -> None:
    wrong = Estimate(SCORE, node(FieldRead("high")))
    refused(ending_in(Branch(CHOSEN, estimate=wrong)), r"logits: found .* inner shape \(1, 4\)")
