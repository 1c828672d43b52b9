from collections.abc import Callable

import pytest
from hypothesis import given

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.graph.parse import parse_graph
from tests.attention.graph.random_graphs import graphs
from tilewright.attention.flow import make_flow, trace_flow
from tilewright.attention.flow.registry import get, list_keys
from tilewright.attention.graph import FlowKind, Geometry, Graph, graph_hash, graph_text
from tilewright.attention.ops import OPS
from tilewright.errors import GraphError

GEOMETRIES = {
    FlowKind.GQA: Geometry.gqa(page_size=16, head_dim=32, query_heads=4),
    FlowKind.MLA: Geometry.mla(page_size=16, kv_lora_rank=24, qk_rope_head_dim=8, query_heads=4),
}


def graph_of(name: str) -> Graph:
    flow = make_flow(name, get(name))
    return trace_flow(flow, GEOMETRIES[flow.kind], name=name)


@pytest.mark.parametrize("name", list_keys())
def test_the_text_of_a_ready_flow_reads_back_as_the_same_graph(name: str) -> None:
    graph = graph_of(name)
    text = graph_text(graph)
    values = {item.name: item.values for item in graph.parameters}
    again = parse_graph(text, OPS, values)
    assert graph_text(again) == text
    assert graph_hash(again) == graph_hash(graph)


@given(graph=graphs())
def test_the_text_of_any_graph_reads_back_as_the_same_graph(graph: Graph) -> None:
    text = graph_text(graph)
    assert graph_text(parse_graph(text, OPS)) == text


@given(graph=graphs())
def test_lines_of_the_author_do_not_count_in_the_hash(graph: Graph) -> None:
    bare = parse_graph(graph_text(graph, sources=False), OPS)
    assert graph_hash(bare) == graph_hash(graph)
    assert "#" not in graph_text(bare)


def test_two_traces_of_one_flow_have_one_hash() -> None:
    assert graph_hash(graph_of("quest")) == graph_hash(graph_of("quest"))
    assert graph_hash(graph_of("quest")) != graph_hash(graph_of("block_sparse_attention"))


def test_the_text_of_quest(check_golden: Callable[[str], None]) -> None:
    check_golden(graph_text(graph_of("gqa_quest_sparse_attention"), sources=False))


def test_the_text_of_state_and_branches(check_golden: Callable[[str], None]) -> None:
    texts = [
        graph_text(graph_of(name), sources=False) for name in ("running_avg_block_sparse", "sparq")
    ]
    check_golden("\n".join(texts))


LINES = graph_text(graph_of("quest")).splitlines()


@pytest.mark.parametrize("line", range(len(LINES)))
def test_a_text_without_one_of_its_lines_is_refused_or_another_graph(line: int) -> None:
    text = "\n".join(LINES[:line] + LINES[line + 1 :])
    if not LINES[line].strip():
        return
    try:
        other = parse_graph(text, OPS)
    except GraphError:
        return
    assert graph_text(other) != "\n".join(LINES) + "\n"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("version 1", "version 9", "line 1: .*version 9, this reads 1"),
        ("Sum<dim=2", "Summe<dim=2", "'Summe'"),
        ("dim=2", "dim=5", "found dim=5"),
        ("attend selection", "attend choice", "it has another form"),
        ("field max", "felt max", "the word 'felt' begins no line"),
        ("RAGGED bool [S, 1, 1]", "RAGGED bool [S, 1, 2]", "found the type"),
        ("%0", "%77", "line"),
    ],
)
def test_a_text_that_is_no_graph_is_refused_with_line_and_reason(
    old: str, new: str, found: str
) -> None:
    text = graph_text(graph_of("quest"))
    assert old in text
    with pytest.raises(GraphError, match=found):
        parse_graph(text.replace(old, new, 1), OPS)
