"""Tables of a page: cells are text, escaped here and nowhere else."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ("Column", "PageTable", "table_text")


@dataclass(frozen=True, slots=True)
class Column:
    """Figures stand to the right, words to the left."""

    title: str
    is_words: bool = False


@dataclass(frozen=True, slots=True)
class PageTable:
    """The first cell of a row names it; rows may come in groups with a line between them."""

    caption: str
    columns: Sequence[Column]
    groups: Sequence[Sequence[Sequence[str]]]


def table_text(table: PageTable) -> str:
    """HTML of a table that scrolls by itself where a screen is narrow."""
    titles = "".join(
        f'<th scope="col"{_kind(column)}>{escape(column.title)}</th>' for column in table.columns
    )
    rows = "\n".join(
        _row(table.columns, cells, is_first=place == 0 and group > 0)
        for group, members in enumerate(table.groups)
        for place, cells in enumerate(members)
    )
    caption = f"<caption>{escape(table.caption)}</caption>"
    head = f"<thead><tr>{titles}</tr></thead>"
    body = f"<tbody>\n{rows}\n</tbody>"
    name = escape(table.caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table>{caption}{head}{body}</table></div>"
    )


def _row(columns: Sequence[Column], cells: Sequence[str], *, is_first: bool) -> str:
    named, *others = cells
    found = [f'<th scope="row">{escape(named)}</th>']
    for column, cell in zip(columns[1:], others, strict=True):
        found.append(f"<td{_kind(column)}>{escape(cell)}</td>")
    start = '<tr class="first">' if is_first else "<tr>"
    return f"{start}{''.join(found)}</tr>"


def _kind(column: Column) -> str:
    return ' class="words"' if column.is_words else ""
