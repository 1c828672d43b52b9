"""Draws the graph of a flow: two panels, values in rows by depth, roots at the bottom."""

from collections import defaultdict
from dataclasses import dataclass, field

from tilewright.attention.graph import FORMAT, Graph, Node, Side
from tilewright.report.svg import Svg, shorten

BOX_WIDTH, BOX_HEIGHT = 190.0, 44.0
GAP_X, GAP_Y = 24.0, 36.0
MARGIN, HEAD = 24.0, 56.0
FILLS = {
    FORMAT.BATCHED: "#dbeafe",
    FORMAT.RAGGED: "#dcfce7",
    FORMAT.PAGED: "#fef3c7",
    FORMAT.PARAMETER: "#ede9fe",
    FORMAT.SLOTTED: "#fee2e2",
}
EDGE, ROOT = "#64748b", "#fecaca"


@dataclass
class _Panel:
    """One side of a graph, laid out in boxes of equal size."""

    title: str
    boxes: list[tuple[str, str, str, str]] = field(default_factory=list)  # name, type, fill, tip
    places: list[tuple[int, int]] = field(default_factory=list)  # column, row
    edges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def width(self) -> float:
        columns = 1 + max((column for column, _ in self.places), default=0)
        return columns * (BOX_WIDTH + GAP_X) - GAP_X

    @property
    def height(self) -> float:
        rows = 1 + max((row for _, row in self.places), default=0)
        return rows * (BOX_HEIGHT + GAP_Y) - GAP_Y


def draw_graph(graph: Graph) -> str:
    """The text of an SVG file. Colours are formats; the pointer on a box shows all about it."""
    panels = [_lay_out(graph, side) for side in Side]
    width = sum(panel.width for panel in panels) + MARGIN * 3
    height = max(panel.height for panel in panels) + HEAD + 2 * MARGIN
    svg = Svg(width, height, f"flow {graph.name}")
    svg.rect(0, 0, width, height, fill="#ffffff")
    left = MARGIN
    for panel in panels:
        _draw(svg, panel, left)
        left += panel.width + MARGIN
    return svg.render()


def _lay_out(graph: Graph, side: Side) -> _Panel:
    when = "when a page is complete" if side is Side.CACHE else "at every step"
    panel = _Panel(f"{graph.name}: {side} side, {when}")
    index: dict[Node, int] = {}
    used: defaultdict[int, int] = defaultdict(int)
    for node in graph.nodes(side):
        index[node] = len(panel.boxes)
        inputs = [index[item] for item in node.inputs]
        row = 1 + max((panel.places[item][1] for item in inputs), default=-1)
        _place(panel, used, row)
        panel.boxes.append(_box(node))
        panel.edges += [(item, index[node]) for item in inputs]
    last = 1 + max((row for _, row in panel.places), default=-1)
    for name, value in _roots(graph, side):
        _place(panel, used, last)
        panel.edges.append((index[value], len(panel.boxes)))
        panel.boxes.append((name, "", ROOT, name))
    return panel


def _place(panel: _Panel, used: defaultdict[int, int], row: int) -> None:
    panel.places.append((used[row], row))
    used[row] += 1


def _box(node: Node) -> tuple[str, str, str, str]:
    pairs = [f"{name}={value}" for name, value in node.op.attributes().items()]
    variable = getattr(node.op, "variable", "")
    name = f"{node.op.name} {variable}".strip()
    tip = f"{node.op.name}({', '.join(pairs)}) : {node.type} {node.source}".strip()
    return name, str(node.type), FILLS[node.type.format], tip


def _roots(graph: Graph, side: Side) -> list[tuple[str, Node]]:
    if side is Side.CACHE:
        return [(f"write {write.target}", write.value) for write in graph.field_writes]
    roots = [(f"save {write.target}", write.value) for write in graph.state_writes]
    return roots + [("attend", node) for node in graph.output.nodes()]


def _draw(svg: Svg, panel: _Panel, left: float) -> None:
    svg.text(left, MARGIN + 10, panel.title, size=15, anchor="start", bold=True)
    for start, end in panel.edges:
        x0, y0 = _corner(panel, start, left)
        x1, y1 = _corner(panel, end, left)
        middle = BOX_WIDTH / 2
        svg.line([(x0 + middle, y0 + BOX_HEIGHT), (x1 + middle, y1)], stroke=EDGE)
    for index, (name, kind, fill, tip) in enumerate(panel.boxes):
        x, y = _corner(panel, index, left)
        svg.rect(x, y, BOX_WIDTH, BOX_HEIGHT, fill=fill, stroke=EDGE, radius=5, tip=tip)
        lines = [(name, 13, True), (kind, 10, False)] if kind else [(name, 13, True)]
        for line, (text, size, bold) in enumerate(lines):
            height = y + BOX_HEIGHT * (line + 1) / (len(lines) + 1)
            fitting = shorten(text, BOX_WIDTH - 12, size=size, bold=bold)
            svg.text(x + BOX_WIDTH / 2, height, fitting, size=size, bold=bold)


def _corner(panel: _Panel, index: int, left: float) -> tuple[float, float]:
    column, row = panel.places[index]
    return left + column * (BOX_WIDTH + GAP_X), HEAD + MARGIN + row * (BOX_HEIGHT + GAP_Y)
