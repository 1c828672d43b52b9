"""The series on machines that are small enough for every day."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tilewright.bench.collectives import (
    CollectivesBenchSpec,
    Series,
    cases_of,
    measure,
    record_of,
    run_collectives_bench,
)
from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.critical import Prediction
from tilewright.collectives.operation import Call, Operation
from tilewright.device.ipcq import RingKind
from tilewright.machine.coords import PeCoord
from tilewright.records.bench import CollectiveRow
from tilewright.validation.collective.measure import CollectiveCase, Measured, bus_factor, run_case

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


def measured(latency_ps: int, *, alpha_ps: int = 0, events: int = 1, **fields: Any) -> Measured:
    row = CollectiveRow(
        **{
            "series": "", "operation": "all_reduce", "algorithm": "ring", "topology": "ring of 4",
            "ranks": 4, "bytes": 64, "buffer": "tcm", "alpha_beta_ps": 1, "bound_ps": 0,
            "ratio": None, "algbw_gbs": 1.0, "busbw_gbs": 1.0, "bottleneck": "a link",
            "bottleneck_share": 0.5, **fields,
        },
        latency_ps=latency_ps,
    )  # fmt: skip
    return Measured(row, Prediction("ring", alpha_ps, 0, 0), events)


def test_each_figure_is_the_worst_of_its_series() -> None:
    found = {
        Series.ALPHA_BETA: [measured(92, alpha_beta_ps=100), measured(106, alpha_beta_ps=100)],
        Series.WHOLE: [measured(92, alpha_beta_ps=100), measured(70, alpha_beta_ps=100)],
        Series.BUS: [
            measured(100, bound_ps=95, busbw_gbs=500.0),
            measured(100, bound_ps=98, busbw_gbs=510.0),
        ],
        Series.EVENTS: [measured(9, events=800, ranks=128), measured(9, events=6720, ranks=1024)],
    }
    record = record_of(found)
    assert record.alpha_beta_worst_error == pytest.approx(0.08)
    assert record.whole_device_worst_ratio == pytest.approx(0.92)
    assert record.bus_fraction_large == pytest.approx(0.95)
    assert record.bus_spread == pytest.approx(0.02)
    assert record.event_growth == pytest.approx(1.05)
    assert record.torus6_64k_ratio is None
    assert [row.latency_ps for row in record.rows] == [92, 106, 92, 70, 100, 100, 9, 9]


@pytest.mark.parametrize(("alpha_ps", "ratio"), [(90, 1.2), (160, 0.75)])
def test_six_sips_are_held_against_the_links_or_a_longer_path(alpha_ps: int, ratio: float) -> None:
    found = {Series.TORUS: [measured(120, bound_ps=100, alpha_ps=alpha_ps)]}
    assert record_of(found).torus6_64k_ratio == pytest.approx(ratio)


def test_few_ranks_and_many_send_as_many_messages_of_one_size() -> None:
    few, many = cases_of(CollectivesBenchSpec(), Series.EVENTS)
    assert (len(few.pes), len(many.pes)) == (128, 1024)
    assert few.num_bytes == many.num_bytes
    blocks = {
        case: checked_plan(
            ALGORITHMS["hierarchical"],
            Call(Operation.ALL_REDUCE, len(case.pes), shape=(len(case.pes) // 128, 4, 4, 8)),
            0,
        ).plan.num_blocks
        for case in (few, many)
    }
    assert few.round_bytes // blocks[few] == many.round_bytes // blocks[many] == 1024


def test_the_bench_has_what_its_figures_are_of() -> None:
    spec = CollectivesBenchSpec()
    bus = cases_of(spec, Series.BUS)
    assert {case.topology for case in bus} == {
        f"{kind} of {sips}" for kind in ("ring", "switch") for sips in (2, 4, 8, 16)
    }
    assert {case.num_bytes for case in bus} == {64 * 2**20}
    one_pe, whole = (cases_of(spec, series) for series in (Series.ALPHA_BETA, Series.WHOLE))
    assert all(case.in_one_chunk and len(case.pes) == 8 for case in one_pe)
    assert not any(case.in_one_chunk or case.pes for case in whole)
    assert {case.num_bytes for case in whole} == {128 * 64 * 2**10}
    assert {(case.topology, case.algorithm) for case in one_pe} == {
        (case.topology, case.algorithm) for case in whole
    }


@pytest.mark.parametrize(
    ("fabric", "algorithm"),
    [
        (("fabric.kind=mesh", "fabric.columns=8"), "ring"),
        (("fabric.kind=ring",), "ring"),
        (("fabric.kind=switch",), "halving_doubling"),
        (("fabric.kind=switch",), "double_tree"),
        (("fabric.kind=torus", "fabric.columns=4"), "torus_2d"),
    ],
)
def test_one_pe_a_rank_takes_what_alpha_and_beta_say_and_chunks_never_make_it_slower(
    fabric: tuple[str, ...], algorithm: str
) -> None:
    pes = tuple((PeCoord(sip, 0, 0),) for sip in range(8))
    whole = CollectiveCase(
        "ahbm", 262_144, algorithm, ("sip.count=8", *fabric), pes, in_one_chunk=True
    )
    row = run_case(whole).row
    assert row.latency_ps == pytest.approx(row.alpha_beta_ps, rel=0.1)
    cut = run_case(replace(whole, in_one_chunk=False)).row
    assert cut.bound_ps <= cut.latency_ps <= 1.1 * cut.alpha_beta_ps


@pytest.mark.parametrize(
    ("fabric", "algorithm"),
    [
        (("fabric.kind=mesh", "fabric.columns=4"), "ring"),
        (("fabric.kind=ring",), "ring"),
        (("fabric.kind=switch",), "halving_doubling"),
        (("fabric.kind=switch",), "double_tree"),
        (("fabric.kind=torus", "fabric.columns=2"), "torus_2d"),
    ],
)
def test_chunks_on_all_pes_take_less_than_paper_without_chunks(
    fabric: tuple[str, ...], algorithm: str
) -> None:
    """64 KiB on each of 16 PEs of four SIPs."""
    row = run_case(
        CollectiveCase("ahbm-small", 16 * 65_536, algorithm, ("sip.count=4", *fabric))
    ).row
    assert row.bound_ps <= row.latency_ps <= row.alpha_beta_ps


def test_paper_knows_no_chunks_whatever_a_run_is_cut_into() -> None:
    cut = CollectiveCase("ahbm-small", 3 * 2**18, "ring", SMALL)  # blocks of 16 KiB, in three
    rows = [run_case(case).row for case in (cut, replace(cut, in_one_chunk=True))]
    assert rows[0].alpha_beta_ps == rows[1].alpha_beta_ps
    assert rows[0].latency_ps != rows[1].latency_ps


def test_the_busiest_link_of_ranks_on_a_switch_leads_out_of_a_sip() -> None:
    row = run_case(CollectiveCase("ahbm-small", 3 * 65_536, "ring", SMALL)).row
    assert "sip" in row.bottleneck
    assert 0 < row.bottleneck_share <= 1
    assert row.algbw_gbs == pytest.approx(row.bytes / row.latency_ps * 1000)
    assert row.ratio == pytest.approx(row.latency_ps / row.bound_ps)


def test_several_processes_find_the_same_figures_as_one() -> None:
    cases = [CollectiveCase("ahbm-small", size, "ring", SMALL) for size in (12_288, 24_576)]
    one, two = (measure(cases, count, lambda _: None) for count in (1, 2))
    assert [each.row for each in one] == [each.row for each in two]
    assert [each.row.bytes for each in two] == [12_288, 24_576]


def test_a_bound_is_what_the_links_of_a_rank_take_for_all_that_must_leave_it() -> None:
    """Two thirds of 768 KiB leave a rank twice: by four links of 128 GB/s, or by one of a PE."""
    pes = tuple((PeCoord(sip, 0, 0),) for sip in range(3))
    cases = [CollectiveCase("ahbm-small", 3 * 2**18, "ring", SMALL, ranks) for ranks in ((), pes)]
    rows = [run_case(case).row for case in cases]
    assert [row.rate_ps for row in rows] == [2**20 * 1000 // 512, 2**20 * 1000 // 128]
    assert all(row.latency_ps >= row.bound_ps > row.rate_ps for row in rows)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        (Operation.ALL_REDUCE, Fraction(3, 2)),
        (Operation.REDUCE_SCATTER, Fraction(3, 4)),
        (Operation.ALL_GATHER, Fraction(3, 4)),
        (Operation.ALL_TO_ALL, Fraction(3, 4)),
        (Operation.BROADCAST, Fraction(1)),
    ],
)
def test_bus_bandwidth_counts_what_leaves_one_of_four_ranks(
    operation: Operation, factor: Fraction
) -> None:
    assert bus_factor(operation, 4) == factor


def test_a_small_all_reduce_takes_the_way_between_its_farthest_ranks() -> None:
    """On a ring of five SIPs two links of 200 ns; through a switch two and 100 ns."""
    least_ns = {"ring": 2 * 200, "switch": 2 * 200 + 100}
    for kind, latency_ns in least_ns.items():
        overrides = ("sip.count=5", f"fabric.kind={kind}", "sip.columns=1", "sip.rows=1")
        case = CollectiveCase("ahbm-small", 1_280, overrides=overrides)
        row = run_case(case).row
        assert row.latency_ps >= row.bound_ps > 1000 * latency_ns
        assert row.bound_latency_ps == row.bound_ps
