"""``tilewright demo``."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine
from tilewright.processes import num_cores
from tilewright.records.demo import DemoFlow, DemoRecord, DemoStep
from tilewright.report.decode_page.model import context_text
from tilewright.report.format import (
    flops_text,
    rate_text,
    short_bottleneck,
    short_bytes,
    short_latency,
)
from tilewright.studies.demo.command import SIZES, plan_demo, run_demo
from tilewright.studies.demo.page import NEXT, flow_label, meaning_of, quality_note, steps_note
from tilewright.units import format_bytes, share_text


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the page and the trace are written.")
    ] = Path(),
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Requests of the steps without values, 8 rows each: {SIZES.batch}, if not said, "
            "fill a SIP; 1 fills a cube and takes a third of the time.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes that share the steps: one a core. The result is the same."
        ),
    ] = None,
) -> Outcome:
    """Show what sparse attention keeps, and how much faster it is.

    Dense, Quest, block-sparse and StreamingLLM decode attention run on `ahbm`, first with values,
    judged against dense attention, then without values at 32K and 128K tokens, a row for each PE of
    a SIP; the Python engine takes one cube of rows and shorter contexts, and says so. In the
    directory are then tilewright-demo.html, a page that needs no other file, and
    tilewright-demo.pftrace for ui.perfetto.dev; older ones are replaced. Exit status 1 if a value
    that the machine computed is wrong.
    """
    record = run_demo(
        plan_demo(announced_engine(), batch),
        directory=out,
        progress=note,
        num_processes=jobs or num_cores(),
    )
    return Outcome(record, view(record), passed=record.ok)


def view(record: DemoRecord) -> RenderableType:
    """What people read; the README shows its table."""
    return Group(
        _paragraph(_machine_text(record)),
        _table(record),
        Text(),
        _paragraph(" ".join(meaning_of(record))),
        _paragraph(f"{quality_note(record)} {steps_note(record)}"),
        *_verdict(record),
        _paragraph(f"The page: {record.page}\nThe timeline of Quest's step: {record.trace}"),
        Text("\n".join(["Next:", *(f"  {name}\n      {why}" for name, why in NEXT.items())])),
    )


def _paragraph(text: str) -> Text:
    return Text(f"{text}\n")


def _machine_text(record: DemoRecord) -> str:
    figures = record.figures
    return (
        f"Decode attention on {record.machine}: {figures.num_sips} packages (SIPs) of compute dies "
        f"(cubes), {figures.num_cubes} in all, with {figures.num_pes} processing elements (PEs), "
        f"{flops_text(figures.f16_flop_per_s)} in f16 and {format_bytes(figures.hbm_bytes)} of HBM "
        f"at {rate_text(figures.hbm_bytes_per_us)}."
    )


def _table(record: DemoRecord) -> Table:
    longest = context_text(record.sizes.contexts[-1])
    table = Table(
        title=f"What flows keep, how long a step takes, and why (bytes, bottleneck: {longest})",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("flow", no_wrap=True)
    for heading in ("needles", "mass", *map(context_text, record.sizes.contexts), "bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("bottleneck")
    for flow in record.flows:
        table.add_row(*_cells(flow))
    return table


def _cells(flow: DemoFlow) -> list[str]:
    quality, last = flow.quality, flow.steps[-1].attention
    return [
        flow_label(flow.flow),
        f"{quality.needles.found}/{quality.needles.planted}",
        share_text(quality.mass),
        *map(_time_text, flow.steps),
        short_bytes(last.bytes),
        short_bottleneck(last.bottleneck_figures),
    ]


def _time_text(step: DemoStep) -> str:
    return f"{short_latency(step.attention.figure_ps)} {step.speedup:>4.1f}x"


def _verdict(record: DemoRecord) -> list[Text]:
    wrong = [flow_label(flow.flow) for flow in record.flows if not flow.quality.values_ok]
    if not wrong:
        return []
    text = f"WRONG values: {', '.join(wrong)} and the reference executor disagree."
    return [_paragraph(f"{text} Please report this as a bug.")]
