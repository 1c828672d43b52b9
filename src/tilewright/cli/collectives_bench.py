"""``tilewright bench collectives``: how near all-reduces come to the links of a machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.benches.collectives_cases import CollectivesBenchSpec, Series
from tilewright.benches.collectives_speed import run_collectives_bench
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine
from tilewright.processes import num_cores
from tilewright.records.collectives_bench import CollectivesBenchRecord
from tilewright.report.collectives_plot import draw_collectives
from tilewright.report.probe_plot import check_plot_path
from tilewright.report.svg import write_svg

__all__ = ("collectives",)


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
    _json: JsonOption = False,
) -> Outcome:
    """Hold simulated all-reduces against bounds and alpha-beta.

    They carry no values. All figures are simulated and equal in every run. Exit status 1 if a
    result is below its bound.
    """
    if plot is not None:
        check_plot_path(plot)
    announced_engine()
    asked = tuple(series) if series else tuple(Series)
    spec = CollectivesBenchSpec(asked, num_processes=jobs or num_cores())
    record = run_collectives_bench(spec, progress=note)
    if plot is not None:
        write_svg(plot, draw_collectives(record))
    passed = all(row.latency_ps >= row.bound_ps for row in record.rows)
    return Outcome(record, _view(record), passed=passed)


def _view(record: CollectivesBenchRecord) -> RenderableType:
    table = Table(title="All-reduce, simulated")
    for column in ("series", "topology", "algorithm", "bytes", "buffer", "us", "alpha-beta us",
                   "bound us", "bus GB/s", "busiest link"):  # fmt: skip
        left = column in ("series", "topology", "algorithm", "buffer", "busiest link")
        table.add_column(column, justify="left" if left else "right")
    for row in record.rows:
        table.add_row(
            row.series,
            row.topology,
            row.algorithm,
            f"{row.bytes:,}",
            row.buffer,
            f"{row.latency_ps / 1e6:.2f}",
            f"{row.alpha_beta_ps / 1e6:.2f}",
            f"{row.bound_ps / 1e6:.2f}",
            f"{row.busbw_gbs:.1f}",
            f"{row.bottleneck} {row.bottleneck_share:.0%}",
        )
    return Group(table, Text("\n".join(_lines(record))))


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
