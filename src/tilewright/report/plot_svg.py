"""From matplotlib's SVG to plain SVG: no names, no references, numbers of two decimals.

So it can stand in a page beside others, fetches nothing, and the last bit of a float never shows.
"""

import re
from collections.abc import Mapping
from copy import copy
from xml.etree import ElementTree

from tilewright.report.svg import sayable

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
