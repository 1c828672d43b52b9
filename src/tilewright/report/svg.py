"""Writes SVG: a few shapes, escaped text, an estimate of its width. Knows no hardware."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.records import write_file

INK = "#0f172a"
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"

_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_NARROW = frozenset(" .,:;'!|ijlI()[]/ftr-·")
_BROAD = frozenset("mwMW@%&…—")
_BOLD = 1.12  # times as wide


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a picture."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2

    def inset(self, margin: float) -> "Box":
        inner = self.width - 2 * margin, self.height - 2 * margin
        return Box(self.x + margin, self.y + margin, *inner)

    def split_bottom(self, height: float) -> tuple["Box", "Box"]:
        """What is above, and a strip of that height at the bottom."""
        above = Box(self.x, self.y, self.width, self.height - height)
        return above, Box(self.x, above.bottom, self.width, height)


def row_of_boxes(box: Box, count: int, gap: float) -> list[Box]:
    """Equal boxes beside each other that fill a box."""
    width = (box.width - (count - 1) * gap) / count
    return [Box(box.x + i * (width + gap), box.y, width, box.height) for i in range(count)]


def grid_of_boxes(
    area: Box, columns: int, rows: int, width: float, height: float
) -> dict[tuple[int, int], Box]:
    """Return boxes by column and row, each in the middle of an equal cell of an area."""
    cell_width, cell_height = area.width / columns, area.height / rows
    return {
        (column, row): Box(
            area.x + (column + 0.5) * cell_width - width / 2,
            area.y + (row + 0.5) * cell_height - height / 2,
            width,
            height,
        )
        for row in range(rows)
        for column in range(columns)
    }


class Svg:
    """A picture while it grows; equal calls give equal bytes."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self._size = f"{_number(width)} {_number(height)}"
        self._title = title
        self._elements: list[str] = []

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        stroke: str = "none",
        radius: float = 0,
        dash: str = "",
        tip: str = "",
    ) -> None:
        """``tip`` is shown when the pointer rests on the shape."""
        places = {"x": x, "y": y, "width": width, "height": height, "rx": radius}
        self._add("rect", places, {"fill": fill, "stroke": stroke, "stroke-dasharray": dash}, tip)

    def box(self, box: Box, *, fill: str, **looks: Any) -> None:
        """Draw a rectangle where a box is."""
        self.rect(box.x, box.y, box.width, box.height, fill=fill, **looks)

    def line(
        self,
        points: Iterable[tuple[float, float]],
        *,
        stroke: str,
        width: float = 1.5,
        dash: str = "",
        tip: str = "",
    ) -> None:
        """Straight pieces from point to point."""
        places = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        looks = {"points": places, "fill": "none", "stroke": stroke, "stroke-dasharray": dash}
        self._add("polyline", {"stroke-width": width}, looks, tip)

    def polygon(self, points: Iterable[tuple[float, float]], *, fill: str) -> None:
        places = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("polygon", {}, {"points": places, "fill": fill}, "")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float,
        anchor: str = "middle",
        bold: bool = False,
        fill: str = INK,
    ) -> None:
        """``y`` is the middle of the letters; ``anchor`` says what of the text is at ``x``."""
        places = _attributes({"x": x, "y": y + 0.35 * size, "font-size": size})
        weight = ' font-weight="bold"' if bold else ""
        looks = f' text-anchor="{anchor}" fill="{fill}"{weight}'
        self._elements.append(f"<text{places}{looks}>{_escaped(text)}</text>")

    def render(self) -> str:
        """The whole file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._size}" role="img" '
            f'font-family="{FONT}">'
        )
        title = f"<title>{_escaped(self._title)}</title>"
        return "\n".join((head, title, *self._elements, "</svg>")) + "\n"

    def _add(self, name: str, places: dict[str, float], looks: dict[str, str], tip: str) -> None:
        words = "".join(f' {key}="{_escaped(value)}"' for key, value in looks.items() if value)
        start = f"<{name}{_attributes(places)}{words}"
        end = f"><title>{_escaped(tip)}</title></{name}>" if tip else "/>"
        self._elements.append(start + end)


def text_width(text: str, *, size: float, bold: bool = False) -> float:
    """About what a common sans-serif font takes, rather more than less.

    >>> text_width("PE 0", size=10)
    25.0
    """
    hundredths = sum(map(_letter_width, text))
    return size * hundredths / 100 * (_BOLD if bold else 1)


def _letter_width(letter: str) -> int:
    """In hundredths of the size."""
    if letter in _NARROW:
        return 40
    if letter in _BROAD:
        return 98
    if unicodedata.east_asian_width(letter) in "WF":
        return 110
    return 73 if letter.isupper() else 64


def shorten(text: str, width: float, *, size: float, bold: bool = False) -> str:
    """The text, or as much of it as fits, with dots.

    >>> shorten("a long description", 60, size=10)
    'a long d…'
    """
    if text_width(text, size=size, bold=bold) <= width:
        return text
    kept = text
    while kept and text_width(kept + "…", size=size, bold=bold) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…" if kept else ""


def write_svg(path: Path, text: str) -> None:
    """Write a picture whole or not at all; an older file is replaced in one step."""
    write_file(path, text.encode(), "picture")


def sayable(text: str) -> str:
    """Return the text with a sign for each letter that XML cannot say, not even escaped."""
    return _UNSAYABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _attributes(values: dict[str, float]) -> str:
    return "".join(f' {key}="{_number(value)}"' for key, value in values.items())


def _number(value: float) -> str:
    """At most two decimals, so that the last bit of a float never shows."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # + 0.0: there is no -0


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in sayable(text))
