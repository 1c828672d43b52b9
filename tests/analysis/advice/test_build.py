"""Advice: its bound by hand, its order, and options that can be run."""

from typing import Any

import pytest

from tests.records.run_records import FIGURES, run_record
from tilewright.analysis.advice.bound import shortest_ps
from tilewright.analysis.advice.build import MAX_ADVICE, advise
from tilewright.analysis.advice.change import INTERLEAVE, REFRESH, WINDOW, Change, single_changes
from tilewright.machine import list_presets, parse_machine
from tilewright.machine.field import flat_fields
from tilewright.records import MachineOfRun, RunParts, RunRecord
from tilewright.records.phases import PhaseSpread
from tilewright.records.run.part import ChannelUse, PathTimes, ResourceUse
from tilewright.report.explain.run import explain_run

GEMM, CLOCK, ROUTER = "pe.gemm.hz", "cube.hbm.timing.clock_ps", "cube.noc.router_ps"
ATTACH, ENDPOINT = "cube.noc.attach_bytes_per_us", "host.pcie.endpoint_ps"
TOTAL_PS = 1_000_000


def use(field: str, busy_ps: int) -> ResourceUse:
    share = busy_ps / TOTAL_PS
    return ResourceUse(
        field=field, num_used=1, busiest="a", busy_ps=busy_ps, greatest=share, median=share,
        mean=share,
    )  # fmt: skip


def record_of(*overrides: str, path: PathTimes | None, **fields: Any) -> RunRecord:
    machine = MachineOfRun(
        name="ahbm", source="ahbm", overrides=overrides, figures=FIGURES,
        fields=flat_fields(parse_machine("ahbm", overrides)),
        is_own=fields.pop("is_own", False),
    )  # fmt: skip
    parts = fields.pop("breakdown_ps", RunParts(memory_read=TOTAL_PS))
    return run_record(TOTAL_PS, breakdown_ps=parts, machine=machine, path=path, **fields)


def fields_of(record: RunRecord) -> list[str]:
    return [advice.field for advice in advise(record)]


PATH = PathTimes(
    work_ps={CLOCK: 600_000, GEMM: 300_000, ENDPOINT: 100_000},
    least_ps={CLOCK: 100_000, GEMM: 300_000, ENDPOINT: 100_000},
    command_ps={ENDPOINT: 100_000},
    num_accesses=1,
)


@pytest.mark.parametrize(
    ("field", "shortest"),
    [
        (ROUTER, 500_000),  # nothing of the least path: it stays
        (GEMM, 350_000),
        ("pe.gemm.rows", 350_000),  # sets the pace of the same unit
        (CLOCK, 450_000),
        ("cube.hbm.timing.cl_clocks", 450_000),
        (ENDPOINT, 450_000),
        (WINDOW, 100_000),  # what comes after what may differ: only the command path stays
        (INTERLEAVE, 100_000),
    ],
)
def test_the_path_stays_but_for_half_of_what_the_field_sets(field: str, shortest: int) -> None:
    assert shortest_ps(record_of(path=PATH), Change(field, 1)) == shortest


@pytest.mark.parametrize(
    ("field", "shortest"),
    [(ROUTER, 900_000), (GEMM, 800_000), (CLOCK, 900_000), (INTERLEAVE, 900_000)],
)
def test_no_resource_does_its_work_in_less_than_its_time(field: str, shortest: int) -> None:
    record = record_of(path=PATH, resources=(use(GEMM, 900_000), use(ATTACH, 800_000)))
    assert shortest_ps(record, Change(field, 1)) == shortest


def test_another_interleaving_may_share_the_work_of_channels() -> None:
    record = record_of("cube.hbm.refresh.kind=none", path=PATH, resources=(use(CLOCK, 900_000),))
    assert shortest_ps(record, Change(WINDOW, 1)) == 900_000
    assert shortest_ps(record, Change(INTERLEAVE, 1)) == 100_000


def test_refreshes_that_surely_fall_into_the_work_of_a_memory_count() -> None:
    """9.5 us have 2 whole intervals of 3.9 us, so that one refresh at least lies whole in them."""
    busy_ps = 9_500_000
    record = record_of(path=PATH, resources=(use(CLOCK, TOTAL_PS),))
    long = record.resources[0].model_copy(update={"busy_ps": busy_ps})
    record = record.model_copy(update={"resources": (long,)})
    assert shortest_ps(record, Change(ROUTER, 1)) == busy_ps + 530_000
    assert shortest_ps(record, Change(REFRESH, 265_000)) == busy_ps + 265_000
    assert shortest_ps(record, Change(CLOCK, 250)) == busy_ps // 2
    quiet = record_of("cube.hbm.refresh.kind=none", path=PATH).model_copy(
        update={"resources": (long,)}
    )
    assert shortest_ps(quiet, Change(ROUTER, 1)) == busy_ps


def test_half_of_the_lower_bound_of_a_program_stays() -> None:
    fields = {"bound_ps": 990_000, "ratio": 1.01, "bound_resource": "HBM"}
    assert shortest_ps(record_of(path=None, **fields), Change(WINDOW, 1)) == 495_000


def test_the_bound_of_advice_is_a_share_of_the_mean_over_phases() -> None:
    latencies = (TOTAL_PS, 3 * TOTAL_PS)
    phases = PhaseSpread(
        count=2, reason="asked", interval_ps=3_900_000, mean_ps=2 * TOTAL_PS, half_width_ps=0.0,
        min_ps=latencies[0], max_ps=latencies[1], latencies_ps=latencies,
    )  # fmt: skip
    advice = {each.field: each for each in advise(record_of(path=PATH, phases=phases))}
    assert advice[GEMM].least_ps == 350_000
    assert advice[GEMM].bound == pytest.approx(1 - 0.35 / 2)
    assert advice[GEMM].worth == pytest.approx(0.15 / 2)
    # what the mean has more than phase 0 is refresh
    assert advice[REFRESH].worth == pytest.approx(0.5 * TOTAL_PS / (2 * TOTAL_PS))


def test_the_most_worth_comes_first_and_no_estimate_exceeds_its_bound() -> None:
    record = record_of(path=PATH, resources=(use(GEMM, 900_000),))
    found = advise(record)
    assert [advice.worth for advice in found] == sorted((a.worth for a in found), reverse=True)
    assert all(advice.worth <= advice.bound for advice in found)
    assert len(found) <= MAX_ADVICE


def test_a_faster_memory_gains_until_links_set_the_pace() -> None:
    """600 ns in memories; at twice the rate 300 are left, but a link needs 550 for the bytes."""
    free, tied = (
        {advice.field: advice.worth for advice in advise(record_of(path=PATH, resources=used))}
        for used in ((), (use(ATTACH, 550_000),))
    )
    assert free[CLOCK] == pytest.approx(0.3)
    assert tied[CLOCK] == pytest.approx(0.05)
    assert fields_of(record_of(path=PATH))[0] == CLOCK
    assert fields_of(record_of(path=PATH, resources=(use(ATTACH, 550_000),)))[0] == GEMM


def crowded(share: float) -> list[str]:
    """Accesses that wait for others, while each of 8 channels is in use so much of the time."""
    channels = ChannelUse(memory="a", shares=(share,) * 8, row_hits=1, row_misses=1)
    return fields_of(record_of(path=PATH, channels=channels, resources=(use(CLOCK, 100_000),)))


def test_accesses_that_crowd_few_channels_are_told_to_spread() -> None:
    assert crowded(0.1)[0] == INTERLEAVE
    assert INTERLEAVE not in crowded(0.6)


def test_a_full_window_is_told_to_grow_if_accesses_wait_for_nothing_else() -> None:
    """All 600 ns of the window, if accesses are as long in memories as on an idle machine."""
    idle, queued = (
        PATH.model_copy(update={"num_accesses": number, "window_ps": 600_000}) for number in (20, 1)
    )
    worth = [
        {each.field: each.worth for each in advise(record_of(path=path))}[WINDOW]
        for path in (idle, queued)
    ]
    assert worth == pytest.approx([0.3, 0.01525])  # 600 less 569.5 of waiting, halved


def test_there_is_no_advice_without_a_path_or_for_a_machine_out_of_reach() -> None:
    for record in (record_of(path=None), record_of(path=PATH, is_own=True)):
        found = explain_run(record, "run.json")
        assert found.advice == ()
        assert "no changes to run with" in found.notes[0]
    assert explain_run(record_of(path=PATH), "run.json").notes == ()


@pytest.mark.parametrize("preset", list_presets())
def test_every_single_change_is_one_that_a_machine_takes(preset: str) -> None:
    fields = flat_fields(parse_machine(preset))
    changes = list(single_changes(fields))
    assert {"pe.gemm.hz", "fabric.latency_ps", CLOCK, ROUTER} <= {each.field for each in changes}
    for change in changes:
        spec = parse_machine(preset, (change.option.removeprefix("--set "),))
        before, after = fields[change.field], flat_fields(spec)[change.field]
        assert isinstance(before, int)
        assert after in (2 * before, -(-before // 2), before + 1)


def test_a_latency_of_a_refresh_phase_is_none_to_halve() -> None:
    names = {change.field for change in single_changes(flat_fields(parse_machine("ahbm")))}
    assert REFRESH in names
    assert not {"cube.hbm.refresh.interval_ps", "cube.hbm.refresh.phase_ps"} & names
    assert not {INTERLEAVE, WINDOW} & names  # sizes
