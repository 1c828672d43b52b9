"""``tilewright bench collectives`` for people, and its exit status."""

from typing import Any

import pytest

from tilewright.analysis.phases import spread_of
from tilewright.cli.command.bench import collectives
from tilewright.cli.main import main
from tilewright.records import installed_versions
from tilewright.records.bench import CollectiveRow, CollectivesBenchRecord

LATENCIES_PS = (2_000_000, 2_600_000, 2_300_000)


def record_with(*, bound_ps: int) -> CollectivesBenchRecord:
    phases = spread_of(
        LATENCIES_PS, interval_ps=3_900_000, refresh_ps=530_000, slices=8, reason="asked"
    )
    row = CollectiveRow(
        series="bus", operation="all_reduce", algorithm="halving_doubling",
        topology="torus of 2 x 3", ranks=6, bytes=8 << 20, buffer="sram",
        latency_ps=LATENCIES_PS[0], phases=phases, alpha_beta_ps=1_234_567, bound_ps=bound_ps,
        ratio=1.5, algbw_gbs=1.0, busbw_gbs=123.4, bottleneck="a -> b", bottleneck_share=0.5,
    )  # fmt: skip
    return CollectivesBenchRecord(
        versions=installed_versions(engine="native"), alpha_beta_worst_error=0.123,
        whole_device_worst_ratio=None, bus_fraction_large=None, bus_spread=None,
        torus6_64k_ratio=None, event_growth=None, rows=(row, row), events=(),
    )  # fmt: skip


def shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **figures: int
) -> tuple[int, str]:
    def found(*_: Any, **__: Any) -> CollectivesBenchRecord:
        return record_with(**figures)

    monkeypatch.setattr(collectives, "run_collectives_bench", found)
    return main(["bench", "collectives"]), capsys.readouterr().out


def test_a_row_shows_mean_half_width_smallest_and_largest_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, table = shown(monkeypatch, capsys, bound_ps=1_000_000)
    assert status == 0
    rows = [line for line in table.splitlines() if "halving_doubling" in line]
    assert [row.split() for row in rows] == 2 * [
        ["torus", "of", "2", "x", "3", "halving_doubling", "8", "MiB", "sram",
         "2.30", "±32.4%", "1.23", "1.00"],
    ]  # fmt: skip
    assert "2 us to 2.6 us over 3 phases; 123.4 GB/s; busiest: a -> b 50%" in table
    assert "Worst distance from alpha-beta: 12.3%." in table
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize(("bound_ps", "status"), [(2_000_000, 0), (2_000_001, 1)])
def test_no_phase_may_be_below_the_bound(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bound_ps: int,
    status: int,
) -> None:
    monkeypatch.setattr(
        f"{__name__}.LATENCIES_PS", tuple(reversed(LATENCIES_PS))
    )  # the first is not the smallest
    assert shown(monkeypatch, capsys, bound_ps=bound_ps)[0] == status
