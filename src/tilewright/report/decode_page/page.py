"""Decode steps as one page: what they keep, how long they take, and why. Needs no other file."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from tilewright.records import write_file
from tilewright.report.decode_page.html_table import table_text
from tilewright.report.decode_page.machine import draw_usage
from tilewright.report.decode_page.model import DecodePage
from tilewright.report.decode_page.plot import draw_quality_over_latency
from tilewright.report.decode_page.stages import draw_stages
from tilewright.report.decode_page.tables import (
    headline_table,
    quality_table,
    share_table,
    stage_table,
    usage_table,
)
from tilewright.report.machine_svg.picture import draw_machine
from tilewright.report.style import STYLE_SHEET, page_colours

__all__ = ("decode_page_text", "write_decode_page")

# nothing is fetched and nothing runs: all that the page may have is its own style
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_decode_page(path: Path, page: DecodePage) -> None:
    """Write the page whole or not at all; an older file is replaced in one step."""
    write_file(path, decode_page_text(page).encode(), "page")


def decode_page_text(page: DecodePage) -> str:
    """HTML that is also well-formed XML; equal pages give equal bytes."""
    body = "\n".join(
        (
            _opening(page),
            _quality_section(page),
            _stage_section(page),
            *_usage_section(page),
            _machine_section(page),
            _closing(page),
        )
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{escape(page.title)}</title>\n"
        f"<style>\n{STYLE_SHEET}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _opening(page: DecodePage) -> str:
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in page.meaning)
    return (
        f'<header>\n<h1>{escape(page.title)}</h1>\n<div class="meaning">{sentences}</div>\n'
        f"{table_text(headline_table(page))}\n"
        f'<p class="note">{escape(page.quality_note)} {escape(page.steps_note)}</p>\n</header>'
    )


def _section(heading: str, note: str, *parts: str) -> str:
    inner = "\n".join(parts)
    return (
        f'<section>\n<h2>{escape(heading)}</h2>\n<p class="note">{escape(note)}</p>\n'
        f"{inner}\n</section>"
    )


def _figure(drawn: str) -> str:
    return f'<figure class="card">\n{drawn}</figure>'


def _quality_section(page: DecodePage) -> str:
    note = (
        "A mark for each flow and context. Mass is the share of the dense softmax that lies on the "
        "pages that were read."
    )
    drawn = draw_quality_over_latency(page, page_colours())
    return _section("Quality over latency", note, _figure(drawn), table_text(quality_table(page)))


def _stage_section(page: DecodePage) -> str:
    note = (
        "The latencies of the stages add up to that of the step, on the PE that ends last. Bytes "
        "are those that the controllers of the HBM counted; ideal is each needed byte once."
    )
    drawn = draw_stages(page, page_colours())
    shares, details = table_text(share_table(page)), table_text(stage_table(page))
    return _section(
        "Where the time goes",
        note,
        _figure(drawn),
        shares,
        f"<details>\n<summary>Bytes of each stage</summary>\n{details}\n</details>",
    )


def _usage_section(page: DecodePage) -> Iterator[str]:
    if not page.usages:
        return
    note = (
        "How much of the step each memory, link and unit was in use. A wire has two lines, one for "
        "each direction; rest the pointer on anything for its name and share."
    )
    parts: list[str] = []
    for usage in page.usages:
        parts.append(f"<h3>{escape(usage.label)}</h3>")
        parts.append(_figure(draw_usage(usage, page.machine, page_colours())))
    parts.append(table_text(usage_table(page)))
    yield _section("The machine in use", note, *parts)


def _machine_section(page: DecodePage) -> str:
    drawn = draw_machine(page.machine)
    summary = f"<summary>The machine {escape(page.machine.spec.name)} with its figures</summary>"
    return f"<section>\n<details>\n{summary}\n{_figure(drawn)}\n</details>\n</section>"


def _closing(page: DecodePage) -> str:
    commands = "".join(
        f"<dt><code>{escape(command)}</code></dt><dd>{escape(why)}</dd>"
        for command, why in page.commands.items()
    )
    facts = " · ".join(f"{escape(name)} {escape(fact)}" for name, fact in page.facts.items())
    heading = '<h2>Try next</h2>\n<dl class="commands">'
    return f'<section>\n{heading}{commands}</dl>\n<p class="note">{facts}</p>\n</section>'
