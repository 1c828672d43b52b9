"""``tilewright bench collectives``: how near all-reduces come to the links of a machine."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tilewright.bench.collectives import CollectivesBenchSpec, Series, run_collectives_bench
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import PhasesOption, announced_engine
from tilewright.processes import num_cores
from tilewright.records.bench import CollectiveRow, CollectivesBenchRecord
from tilewright.report.collectives_plot import draw_collectives
from tilewright.report.format import ends_text, width_text
from tilewright.report.plot import check_plot_path
from tilewright.report.svg import write_svg
from tilewright.units import format_bytes

MEANING = """\
us: mean over refresh phases; on paper: alpha-beta of blocks that are not cut;
GB/s: of the bus; busiest: the link, and for which share of the time"""
HEADER = (
    f"  {'topology':<15}{'algorithm':<18}{'bytes':>9} {'ring':<4}"
    f"{'us':>7}{'':>7}{'on paper':>9}{'bound':>8}"
)


def collectives(
    series: Annotated[
        list[Series] | None, typer.Option(help="What to measure; all of it if it is left out.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes that share the cases: one a core. Figures are the same."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw latencies beside bounds and alpha-beta in this SVG file.", metavar="FILE.svg"
        ),
    ] = None,
    phases: PhasesOption = None,
) -> Outcome:
    """Hold simulated all-reduces against bounds and alpha-beta.

    They carry no values. All figures are simulated and equal in every run. Exit status 1 if a
    result is below its bound.
    """
    if plot is not None:
        check_plot_path(plot)
    announced_engine()
    asked = tuple(series) if series else tuple(Series)
    spec = CollectivesBenchSpec(asked, num_processes=jobs or num_cores(), phases=phases)
    record = run_collectives_bench(spec, progress=note)
    if plot is not None:
        write_svg(plot, draw_collectives(record))
    passed = all(row.least_ps >= row.bound_ps for row in record.rows)
    return Outcome(record, _view(record), passed=passed)


def _view(record: CollectivesBenchRecord) -> Text:
    """Return a block of lines for each series, at most 80 columns wide but for names of links."""
    view = Text("All-reduce, simulated\n", style="bold")
    view.append(f"{MEANING}\n\n")
    for series, rows in groupby(record.rows, key=lambda row: row.series):
        view.append(f"{series}\n", style="bold")
        view.append(f"{HEADER}\n", style="dim")
        for row in rows:
            view.append("".join(f"{line}\n" for line in _row_lines(row)))
        view.append("\n")
    view.append("\n".join(_lines(record)))
    view.rstrip()
    return view


def _row_lines(row: CollectiveRow) -> Iterator[str]:
    yield (
        f"  {row.topology:<15}{row.algorithm:<18}{format_bytes(row.bytes):>9} {row.buffer:<4}"
        f"{row.mean_ps / 1e6:>7.2f}{width_text(row.phases):>7}"
        f"{row.alpha_beta_ps / 1e6:>9.2f}{row.bound_ps / 1e6:>8.2f}"
    )
    ends = ends_text(row.phases)
    spread = f"{ends} over {row.phases.count} phases; " if row.phases is not None and ends else ""
    busiest = f"{row.bottleneck} {row.bottleneck_share:.0%}"
    yield f"    {spread}{row.busbw_gbs:.1f} GB/s; busiest: {busiest}"


def _lines(record: CollectivesBenchRecord) -> list[str]:
    texts = (
        (record.alpha_beta_worst_error, "Worst distance from alpha-beta: {:.1%}."),
        (
            record.whole_device_worst_ratio,
            "Chunks on all PEs, 64 KiB each, take at most {:.2f} times alpha-beta without chunks.",
        ),
        (record.bus_fraction_large, "Large all-reduces use at least {:.1%} of a SIP's links."),
        (record.bus_spread, "Their bus bandwidths differ by {:.1%}."),
        (record.torus6_64k_ratio, "8 MiB on six SIPs: {:.2f} times the bound."),
        (
            record.event_growth,
            "Events of a chunk of a rank among 1024: {:.2f} times those among 128.",
        ),
    )
    return [text.format(value) for value, text in texts if value is not None]
