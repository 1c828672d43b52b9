import xml.etree.ElementTree as ElementTree

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.flow import make_flow, trace_flow
from tilewright.attention.flow.registry import get
from tilewright.attention.graph import Graph, Side
from tilewright.attention.verify import DEFAULT_GEOMETRIES
from tilewright.report.attention_svg import draw_graph

SPACE = "{http://www.w3.org/2000/svg}"


def graph_of(name: str) -> Graph:
    flow = make_flow(name, get(name))
    return trace_flow(flow, DEFAULT_GEOMETRIES[flow.kind], name=name)


@pytest.mark.parametrize("name", ["quest", "running_avg_block_sparse", "streaming_llm", "nsa"])
def test_every_value_and_root_has_a_box_inside_the_picture(name: str) -> None:
    graph = graph_of(name)
    root = ElementTree.fromstring(draw_graph(graph))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    boxes = [box for box in root.iter(f"{SPACE}rect") if box.find(f"{SPACE}title") is not None]
    values = sum(1 for side in Side for _ in graph.nodes(side))
    roots = len(graph.field_writes) + len(graph.indexer_roots())
    assert len(boxes) == values + roots
    for box in boxes:
        x, y = float(box.attrib["x"]), float(box.attrib["y"])
        assert 0 <= x <= width - float(box.attrib["width"])
        assert 0 <= y <= height - float(box.attrib["height"])


def test_no_two_boxes_overlap_and_every_edge_is_drawn() -> None:
    graph = graph_of("quest")
    root = ElementTree.fromstring(draw_graph(graph))
    boxes = [box for box in root.iter(f"{SPACE}rect") if box.find(f"{SPACE}title") is not None]
    corners = {(box.attrib["x"], box.attrib["y"]) for box in boxes}
    assert len(corners) == len(boxes)
    edges = sum(len(node.inputs) for side in Side for node in graph.nodes(side))
    edges += len(graph.field_writes) + len(graph.indexer_roots())
    assert len(list(root.iter(f"{SPACE}polyline"))) == edges


def test_equal_graphs_give_equal_pictures() -> None:
    assert draw_graph(graph_of("quest")) == draw_graph(graph_of("quest"))
