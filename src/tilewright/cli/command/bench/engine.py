"""``tilewright bench engine``: both event engines beside SimPy."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.bench.engine import run_engine_bench
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine
from tilewright.records import EngineBenchRecord, EngineWorkloadRow
from tilewright.units import format_ps


def engine(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random loads.")] = 1,
    rounds: Annotated[
        int, typer.Option(min=1, help="Turns that each implementation gets; the best counts.")
    ] = 5,
) -> Outcome:
    """Time both event engines beside SimPy, and prove them equal.

    All have the same loads. Needs the extra `bench`. Figures are ratios of wall times in this run:
    absolute times say more about the machine than about the engine. Exit status 1 if any result
    differs.
    """
    announced_engine()
    record = run_engine_bench(progress=note, seed=seed, rounds=rounds)
    return Outcome(record, _view(record), passed=record.identical)


def _view(record: EngineBenchRecord) -> RenderableType:
    title = Text("Speed against SimPy at message level (times as fast)", style="italic")
    ratios = Table(show_header=False)
    for name, value in record.ratios:
        ratios.add_row(
            name.replace("_", " "), "no compiled core" if value is None else f"{value:.1f}"
        )
    verdict = "All results are equal." if record.identical else "Results DIFFER: see the digests."
    lines = [verdict, "ev/hop: events that were handled per hop."]
    if record.growth_64_to_1024 is not None:
        lines.append(
            f"A hop on 1024 nodes takes {record.growth_64_to_1024:.2f} times as long as on 64, "
            "at the same load per node."
        )
    lines.append(
        f"Conservation rules take {record.invariant_cost:.1%} of a run (worst engine, open loop)."
    )
    if record.simpy_timeouts_per_s is not None:
        lines.append(f"SimPy alone: {record.simpy_timeouts_per_s:,.0f} bare timeouts a second.")
    return Group(speed_table(record.workloads), title, ratios, Text("\n".join(lines)))


def speed_table(rows: Sequence[EngineWorkloadRow]) -> Table:
    """One row for each; the speed-up is against the first implementation of the same load."""
    table = Table(
        title="Packet hops per second of wall time",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for heading in ("load", "run by"):
        table.add_column(heading, no_wrap=True)
    for heading in ("simulated", "hops/s", "ev/hop", "speed-up", "digest"):
        table.add_column(heading, justify="right", no_wrap=True)
    first: dict[str, float] = {}
    for row in rows:
        is_new = row.workload not in first
        base = first.setdefault(row.workload, row.hops_per_s)
        table.add_row(
            row.workload if is_new else "",
            row.implementation,
            format_ps(row.simulated_ps),
            _short(row.hops_per_s),
            "-" if row.events_per_hop is None else f"{row.events_per_hop:.2f}",
            f"{row.hops_per_s / base:,.1f}x",
            row.digest[:6],
        )
    return table


def _short(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"
