"""Pages of HTML that need no other file, from the templates beside this module.

Jinja escapes whatever a page is given, but for pictures, which are markup already.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.records import write_file
from tilewright.report.style import COLOURS, DARK_COLOURS, themed

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ("picture", "render_page", "themed_picture", "write_page")


def render_page(template: str, **values: Any) -> str:
    """Return HTML that is also well-formed XML; equal values give equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # for pages only

    environment = Environment(
        loader=PackageLoader("tilewright.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(light=COLOURS, dark=DARK_COLOURS, **values)


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all; an older file is replaced in one step."""
    write_file(path, text.encode(), "page")


def picture(drawn: str) -> "Markup":
    """Return an SVG as markup that is not escaped; it has colours of its own."""
    from markupsafe import Markup  # noqa: PLC0415  # comes with Jinja

    return Markup(drawn)  # our own pictures escape what they are given


def themed_picture(drawn: str) -> "Markup":
    """Return the same for an SVG in the light colours, which becomes dark with the page."""
    return picture(themed(drawn))
