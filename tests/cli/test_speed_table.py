"""The table of the demonstration and the benchmark, at the width of a small terminal."""

from io import StringIO

import pytest
from rich.console import Console

from tilewright.cli.command.bench.engine import speed_table
from tilewright.records import EngineWorkloadRow

WIDTH = 80


def row(workload: str, implementation: str, hops_per_s: float) -> EngineWorkloadRow:
    return EngineWorkloadRow(
        workload=workload,
        implementation=implementation,
        seconds=0.5,
        hops=1_000_000,
        hops_per_s=hops_per_s,
        events_per_hop=145.24,
        simulated_ps=258_403,
        digest="0123456789abcdef" * 4,
    )


@pytest.mark.parametrize("slowest", ["simpy", "simpy, flits"])
def test_wide_numbers_fit_into_80_columns_uncut(slowest: str) -> None:
    rows = [
        row(workload, implementation, rate)
        for workload in ("open loop", "closed loop", "finite buffers")
        for implementation, rate in ((slowest, 99_999.9), ("native", 199_999_999.0))
    ]
    text = StringIO()
    Console(file=text, width=WIDTH).print(speed_table(rows))
    assert "\N{HORIZONTAL ELLIPSIS}" not in text.getvalue()
    assert "finite buffers" in text.getvalue()
    assert "2,000.0x" in text.getvalue()
    assert max(len(line) for line in text.getvalue().splitlines()) <= WIDTH
