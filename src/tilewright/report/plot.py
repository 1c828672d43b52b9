"""Pictures with axes, drawn by matplotlib.

The only module that imports matplotlib. It does so inside functions: the import takes a third of a
second, and commands that draw nothing do not wait for it.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from tilewright.errors import RecordError
from tilewright.records import check_target
from tilewright.report.style import COLOURS, LEGEND_SIZE, PLOT_SHEET
from tilewright.report.svg import sayable, shorten, text_width

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


PER_INCH = 72  # pixels, as in every SVG of matplotlib
ROUND_FACTORS = (1.0, 2.0, 5.0)
MAX_TICKS = 8
BAR_HEIGHT = 0.7  # of a row
PADDING = 1.25  # of a logarithmic axis: a factor between what is drawn and its ends
LEAST_RATIO = 4.0  # of the ends of a logarithmic axis
WIDE = 1000.0  # a logarithmic axis of at least this factor has ticks at powers alone
LABEL_SIZE, MARK = 12.0, 8.0  # of the label of a point; half the side of a mark
CORNERS = ((True, False), (False, True), (True, True), (False, False))  # lines mostly rise
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))

Box = tuple[float, float, float, float]


def check_plot_path(path: Path, suffixes: Sequence[str] = (".svg",)) -> None:
    """Refuse, before any work is done, a file that a plot cannot become."""
    if path.suffix.lower() not in suffixes:
        expected = f"a name that ends in {' or '.join(suffixes)}"
        raise RecordError(str(path), f"a plot called {path.name!r}", expected, "rename it")
    check_target(path, "plot")


@contextmanager
def open_plot(width: float, height: float, title: str) -> Iterator["Plot"]:
    """Open a picture of so many pixels; equal calls give equal bytes, whatever the user's settings.

    >>> with open_plot(100, 50, "a square") as plot:
    ...     _ = plot.axes(10, 10, 30, 30)
    ...     plot.render().splitlines()[1]
    '<title>a square</title>'
    """
    from matplotlib import style  # noqa: PLC0415  # as the module's docstring says
    from matplotlib.figure import Figure  # noqa: PLC0415

    with style.context(["default", dict(PLOT_SHEET)]), warnings.catch_warnings():
        # letters that DejaVu Sans lacks stay text, and a reader's own fonts show them
        warnings.filterwarnings("ignore", r"Glyph \d+|Matplotlib currently does not support")
        figure = Figure(figsize=(width / PER_INCH, height / PER_INCH), dpi=PER_INCH)
        yield Plot(figure, title)


class Plot:
    """A picture that ``open_plot`` has opened. Positions are pixels from the top left corner."""

    def __init__(self, figure: "Figure", title: str) -> None:
        self._figure = figure
        self._width, self._height = (PER_INCH * length for length in figure.get_size_inches())
        self._title = title
        self._tips: dict[str, str] = {}

    def axes(self, left: float, top: float, width: float, height: float) -> "Axes":
        """Add axes; position and size are those of the frame, without labels."""
        x, y = self._fraction(left, top + height)
        return self._figure.add_axes((x, y, width / self._width, height / self._height))

    def rows(self, left: float, top: float, width: float, height: float, count: float) -> "Axes":
        """Add axes without a frame for bars; row 0 is on top, and the middle of row n is at n."""
        axes = self.axes(left, top, width, height)
        axes.set_axis_off()
        axes.set_ylim(max(count, 1) - 0.5, -0.5)
        return axes

    def bar(self, axes: "Axes", row: float, pieces: Iterable[tuple[float, str, str]]) -> None:
        """Add pieces end to end, from 0 on: the length, the colour and the tip of each."""
        left = 0.0
        for length, colour, tip in pieces:
            self.tip(axes.barh(row, length, BAR_HEIGHT, left, color=colour, linewidth=0), tip)
            left += length

    def mark(
        self, axes: "Axes", x: float, y: float, shape: str, colour: str, tip: str, **looks: Any
    ) -> None:
        """Add a mark of a shape in matplotlib's letters, and its tip."""
        self.tip(axes.plot(x, y, shape, color=colour, **looks), tip)

    def text(self, x: float, y: float, text: str, *, role: str = "ink", **looks: Any) -> None:
        """Add a line whose letters have their middle at ``y``."""
        looks = {"color": COLOURS[role], "va": "center_baseline", **looks}
        self._figure.text(*self._fraction(x, y), sayable(text), **looks)

    def legend(
        self,
        left: float,
        top: float,
        entries: Iterable[tuple["Artist", str]],
        *,
        width: float,
        columns: int = 1,
    ) -> None:
        """Add a legend whose labels are at most so wide."""
        artists, labels = zip(*entries, strict=True)
        shown = [shorten(sayable(label), width, size=LEGEND_SIZE) for label in labels]
        corner = self._fraction(left, top)
        self._figure.legend(artists, shown, loc="upper left", bbox_to_anchor=corner, ncols=columns)

    def tip(self, artists: "Artist | Iterable[Artist]", text: str) -> None:
        """Show a text where the pointer rests on what was drawn."""
        for artist in artists if isinstance(artists, Iterable) else (artists,):
            name = f"tip-{len(self._tips)}"
            artist.set_gid(name)
            self._tips[name] = text

    def render(self) -> str:
        """Return the text of an SVG file."""
        drawn = StringIO()
        self._figure.savefig(drawn, format="svg", metadata=NO_METADATA)
        return plain_svg(drawn.getvalue(), self._title, self._tips)

    def _fraction(self, x: float, y: float) -> tuple[float, float]:
        return x / self._width, 1 - y / self._height


def legend_mark(axes: "Axes", shape: str, colour: str, **looks: Any) -> "Artist":
    """Return what a legend shows of a line or mark; nothing is drawn in the axes."""
    return axes.plot([], [], shape, color=colour, **looks)[0]


def set_log_scale(
    axes: "Axes",
    side: Literal["x", "y"],
    values: Iterable[float],
    label: Callable[[float], str],
    *,
    base: int = 10,
) -> None:
    """Make an axis logarithmic around all values, with few and round ticks."""
    from matplotlib import ticker  # noqa: PLC0415

    found = list(values)
    low, high = min(found) / PADDING, max(found) * PADDING
    widening = max(1.0, (LEAST_RATIO * low / high) ** 0.5)
    low, high = low / widening, high * widening
    axes.set(**{f"{side}scale": "log", f"{side}lim": (low, high)})
    if base == 10 and high / low < base:
        locator: ticker.Locator = ticker.MaxNLocator(MAX_TICKS - 2)
    else:
        factors = ROUND_FACTORS if base == 10 and high / low < WIDE else (1.0,)
        locator = ticker.LogLocator(base, factors, numticks=MAX_TICKS)
    axis: Axis = getattr(axes, f"{side}axis")
    axis.set_major_locator(locator)
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: label(value)))


def label_points(axes: "Axes", points: Sequence[tuple[float, float, str, str]]) -> None:
    """Label points with texts and colours; leave out a label that would hide a mark or a label."""
    pixels = [(*axes.transData.transform((x, y)), text) for x, y, text, _ in points]
    taken = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y, _ in pixels]
    for (x, y, text), (*_, colour) in zip(pixels, points, strict=True):
        width, height = text_width(text, size=LABEL_SIZE), LABEL_SIZE
        for right, up in CORNERS:
            left = x + MARK if right else x - MARK - width
            low = y + MARK if up else y - MARK - height
            box = (left, low, left + width, low + height)
            if any(map(partial(_overlap, box), taken)):
                continue
            taken.append(box)
            axes.annotate(
                text, (x, y), (left - x, low - y), xycoords="figure pixels",
                textcoords="offset pixels", color=colour,
                fontsize=LABEL_SIZE,
            )  # fmt: skip
            break


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_DECIMAL = re.compile(r"-?\d+\.\d+")
_REFERRING = ("id", "clip-path")
_NO_TURN = "rotate(-0 "


def plain_svg(drawn: str, title: str, tips: Mapping[str, str]) -> str:
    """Return the picture with a title; ``tips`` are texts for the pointer, by an element's name."""
    root = ElementTree.fromstring(sayable(drawn))
    shapes = {element.get("id"): element for element in root.iter(f"{_SVG}path")}
    for parent in list(root.iter()):
        for index, child in enumerate(list(parent)):
            if child.tag == f"{_SVG}use":
                parent[index] = _copied(shapes[child.attrib[_HREF].removeprefix("#")], child)
        for child in parent.findall(f"{_SVG}defs"):
            parent.remove(child)
    for element in list(root.iter()):
        tip = tips.get(element.get("id", ""))
        if tip is not None:
            element.insert(0, _titled(tip))
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = {
            name: _DECIMAL.sub(_rounded, value)
            for name, value in element.attrib.items()
            if name not in _REFERRING and not value.startswith(_NO_TURN)
        }
    root.attrib = {
        "xmlns": _SVG.strip("{}"),
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "stroke-linejoin": "round",
    }
    root.insert(0, _titled(title))
    ElementTree.indent(root, "")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _copied(shape: ElementTree.Element, use: ElementTree.Element) -> ElementTree.Element:
    """Return the shape where its use puts it."""
    found = copy(shape)
    place = f"translate({use.get('x', '0')} {use.get('y', '0')})"
    style = use.get("style", shape.get("style", ""))
    found.attrib = {"d": shape.attrib["d"], "transform": place, "style": style}
    return found


def _titled(text: str) -> ElementTree.Element:
    title = ElementTree.Element("title")
    title.text = sayable(text)
    return title


def _rounded(number: re.Match[str]) -> str:
    value = round(float(number[0]), 2) + 0.0  # there is no -0
    return f"{value:.2f}".rstrip("0").rstrip(".")
