"""The series on machines that are small enough for every day."""

import pytest

from tilewright.benches.collectives_run import CollectiveCase, run_case
from tilewright.benches.collectives_speed import (
    CollectivesBenchSpec,
    Series,
    run_collectives_bench,
)
from tilewright.device.ipcq import RingKind

SMALL = ("sip.count=3",)


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "double_tree", "direct"])
def test_no_all_reduce_beats_the_bound_of_its_links(algorithm: str) -> None:
    row = run_case(CollectiveCase("ahbm-small", 3 * 16_384, algorithm, SMALL)).row
    assert row.latency_ps >= row.bound_ps > 0
    assert row.busbw_gbs == pytest.approx(2 * 2 / 3 * row.bytes / row.latency_ps * 1000)


def test_slots_in_the_tcm_are_never_slower_than_in_other_memories() -> None:
    times = {
        kind: run_case(CollectiveCase("ahbm-small", 96_000, "ring", SMALL, buffer=kind)).row
        for kind in RingKind
    }
    tcm_ps = times[RingKind.TCM].latency_ps
    assert tcm_ps <= times[RingKind.SRAM].latency_ps
    assert tcm_ps <= times[RingKind.HBM].latency_ps


def test_a_series_alone_leaves_the_figures_of_others_empty() -> None:
    spec = CollectivesBenchSpec((Series.ALPHA_BETA,), alpha_beta_bytes=(4096,))
    record = run_collectives_bench(spec, progress=lambda _: None)
    assert record.alpha_beta_worst_error is not None
    assert (record.bus_spread, record.torus6_64k_ratio, record.event_growth) == (None, None, None)
    assert {row.algorithm for row in record.rows} == {
        "ring", "halving_doubling", "double_tree", "torus_2d",
    }  # fmt: skip
