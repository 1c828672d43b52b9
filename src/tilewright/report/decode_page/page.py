"""Decode steps as one page: what they keep, how long they take, and why. Needs no other file."""

from pathlib import Path

from tilewright.report.decode_page.machine import draw_usage
from tilewright.report.decode_page.model import DecodePage
from tilewright.report.decode_page.plot import draw_quality_over_latency
from tilewright.report.decode_page.stages import draw_stages
from tilewright.report.decode_page.tables import page_tables
from tilewright.report.html_page import render_page, write_page
from tilewright.report.machine_svg.picture import draw_machine
from tilewright.report.style import themed


def write_decode_page(path: Path, page: DecodePage) -> None:
    """Write the page whole or not at all; an older file is replaced in one step."""
    write_page(path, decode_page_text(page))


def decode_page_text(page: DecodePage) -> str:
    """Return HTML that is also well-formed XML; equal pages give equal bytes."""
    return render_page(
        "decode_page.html",
        title=page.title,
        page=page,
        tables=page_tables(page),
        quality=themed(draw_quality_over_latency(page)),
        stages=themed(draw_stages(page)),
        usages=[themed(draw_usage(usage, page.machine)) for usage in page.usages],
        machine=draw_machine(page.machine),
    )
