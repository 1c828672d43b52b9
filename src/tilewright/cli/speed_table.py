"""Implementations on workloads, as a table for people."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from tilewright.records import EngineWorkloadRow
from tilewright.units import format_ps


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
