"""Reads what a plot shows: its texts, its tips, and where what they belong to lies."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

__all__ = ("Shape", "lines", "size", "texts", "tipped", "tips")

SVG = "{http://www.w3.org/2000/svg}"
PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shape:
    """A path in pixels from the top left corner."""

    points: tuple[Point, ...]
    style: dict[str, str]

    @property
    def left(self) -> float:
        return min(x for x, _ in self.points)

    @property
    def right(self) -> float:
        return max(x for x, _ in self.points)

    @property
    def middle(self) -> Point:
        """The middle of the smallest rectangle around it."""
        ys = [y for _, y in self.points]
        return (self.left + self.right) / 2, (min(ys) + max(ys)) / 2


def size(text: str) -> Point:
    _, _, width, height = ElementTree.fromstring(text).attrib["viewBox"].split()
    return float(width), float(height)


def texts(text: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(text).iter(f"{SVG}text")]


def tips(text: str) -> list[str]:
    return [tip for tip, _ in tipped(text)]


def tipped(text: str) -> list[tuple[str, Shape]]:
    """What shows a tip, in the order of drawing."""
    groups = ElementTree.fromstring(text).iter(f"{SVG}g")
    return [
        (group.findtext(f"{SVG}title") or "", _shape(path))
        for group in groups
        if group.find(f"{SVG}title") is not None
        for path in group.iter(f"{SVG}path")
    ]


def lines(text: str, colour: str) -> list[Shape]:
    """All open shapes in a colour: lines, and marks that are not filled."""
    shapes = [_shape(path) for path in ElementTree.fromstring(text).iter(f"{SVG}path")]
    return [
        shape
        for shape in shapes
        if shape.style.get("stroke") == colour
        if shape.style["fill"] == "none" or len(shape.points) == 2
    ]


def _shape(path: ElementTree.Element) -> Shape:
    moved = PAIR.search(path.get("transform", ""))
    across, down = (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)
    points = [(float(x) + across, float(y) + down) for x, y in PAIR.findall(path.attrib["d"])]
    style = (part.split(": ") for part in path.get("style", "").split("; ") if part)
    return Shape(tuple(points), dict(style))
