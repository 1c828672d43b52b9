"""Pages of HTML that need no other file, from the templates beside this module.

Jinja escapes whatever a page is given, but for pictures, which are markup already.
"""

from pathlib import Path
from typing import Any

from tilewright.records import write_file
from tilewright.report.style import COLOURS, DARK_COLOURS


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
