"""The probe as a whole: its checks hold on any machine, both engines agree, nothing half-done."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.programs.probe.machines import overrides, small_machine
from tilewright.engine import AUTO, EngineKind
from tilewright.errors import SpecError
from tilewright.machine.build import build_machine, machine_hash
from tilewright.machine.parse import parse_machine
from tilewright.programs.probe.case import PROBE_CASES
from tilewright.programs.probe.run import run_probe

LONELY = ("pe_local", "pe_same_cube", "pe_next_cube", "pe_far_cube", "hot_1")
SLOW_CLOCKS = ("bl", "ccd_s", "ccd_l", "ccd_r")
sizes = st.integers(1, 20_000)


@given(overrides(), st.tuples(sizes, sizes))
@settings(max_examples=20)
def test_on_any_machine_no_bound_is_beaten_and_all_parts_add_up(
    values: tuple[str, ...], chosen: tuple[int, int]
) -> None:
    record = run_probe(small_machine(*values), sizes=chosen)
    assert record.ok, record.failures
    assert len(record.cases) == (len(PROBE_CASES) - len(record.skipped)) * len(set(chosen))
    for row in record.cases:
        assert row.bound_ps <= row.latency_ps
        assert sum(part_ps for _, part_ps in row.breakdown_ps) == row.latency_ps
        assert 0 < row.utilisation <= 1


@needs_both_engines
@given(overrides(), sizes, st.sampled_from(LONELY))
@settings(max_examples=10)
def test_both_engines_make_the_same_rows(
    values: tuple[str, ...], num_bytes: int, lonely: str
) -> None:
    machine = small_machine("cube.pes=2", "cube.hbm.pseudo_channels=4", *values)
    has_one_cube = machine.grid.num_cubes_per_sip == 1
    names = ("pe_local" if has_one_cube else lonely, "hot_2")
    found = [
        run_probe(machine, names=names, sizes=[num_bytes], choice=kind).cases
        for kind in (EngineKind.REFERENCE, EngineKind.NATIVE)
    ]
    assert found[0] == found[1]


@needs_both_engines
@given(st.integers(0, 9_000_000), sizes, st.sampled_from(("all_bank", "per_bank")))
@settings(max_examples=10)
def test_both_engines_follow_any_refresh_phase_and_an_interval_more_changes_nothing(
    phase_ps: int, num_bytes: int, scope: str
) -> None:
    few = ("cube.pes=2", "cube.hbm.pseudo_channels=4", f"cube.hbm.refresh.kind={scope}")
    found = []
    for extra_ps, kind in ((0, EngineKind.REFERENCE), (0, EngineKind.NATIVE), (3_900_000, AUTO)):
        phase = f"cube.hbm.refresh.phase_ps={phase_ps + extra_ps}"
        machine = small_machine(*few, phase)
        record = run_probe(machine, names=("pe_local", "hot_2"), sizes=[num_bytes], choice=kind)
        assert record.ok, record.failures
        found.append(record.cases)
    assert found[0] == found[1] == found[2]


def test_no_case_has_an_order_of_its_own_and_sizes_grow() -> None:
    said: list[str] = []
    machine = small_machine()
    names, chosen = ("hot_1", "pe_local"), (512, 64, 512)
    record = run_probe(machine, names=names, sizes=chosen, progress=said.append)
    rows = [(row.case, row.bytes) for row in record.cases]
    assert rows == [("pe_local", 64), ("pe_local", 512), ("hot_1", 64), ("hot_1", 512)]
    assert said[::3] == ["1/4 pe_local, 64 B", "4/4 hot_1, 512 B"]
    assert record.machine_hash == machine_hash(machine.spec)


def test_a_usual_size_that_fits_no_slice_is_skipped_and_one_asked_for_is_refused() -> None:
    machine = small_machine("cube.hbm.capacity_bytes=32 MiB")  # 8 MiB a slice, 16 issuers
    said: list[str] = []
    record = run_probe(machine, names=["slice_all"], sizes=[256], progress=said.append)
    assert [row.bytes for row in record.cases] == [256]
    with pytest.raises(SpecError, match="at most 8388608 bytes of a slice"):
        run_probe(machine, sizes=[256, 2**20], progress=said.append)
    assert len(said) == 1, "a row ran before its neighbour was refused"


def test_a_slice_too_small_for_the_usual_sizes_is_refused_with_the_machine() -> None:
    with pytest.raises(SpecError, match="found 262144 bytes for each of 4 PEs"):
        small_machine("cube.hbm.capacity_bytes=1 MiB", "cube.hbm.row_bytes=32")


@pytest.mark.parametrize(
    ("names", "chosen", "message"),
    [
        (["pe_locla"], [256], "did you mean 'pe_local'?"),
        (["hot_8"], [256], "it has 4 PEs a cube, not 8"),
        (["pe_other_sip"], [256], "it has one SIP"),
        (["pe_local"], [0], "at least one byte"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(
    names: list[str], chosen: list[int], message: str
) -> None:
    said: list[str] = []
    with pytest.raises(SpecError, match=message.replace("?", r"\?")):
        run_probe(small_machine(), names=["pe_local", *names], sizes=chosen, progress=said.append)
    assert said == []


SLOW_MEMORY = tuple(f"cube.hbm.timing.{name}_clocks=16" for name in SLOW_CLOCKS)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (("cube.ucie.bytes_per_us=16000",), "sip0.cube1.ucie-W.conn0 -> sip0.cube0.ucie-E.conn0"),
        (("cube.noc.attach_bytes_per_us=16000",), "sip0.cube0.r0c0 -> sip0.cube0.pe0.dma"),
        (SLOW_MEMORY, "sip0.cube1.hbm_ctrl.pe0"),
    ],
)
def test_the_busiest_part_is_the_slow_one(values: tuple[str, ...], name: str) -> None:
    machine = small_machine(*values)
    (row,) = run_probe(machine, names=["pe_next_cube"], sizes=[65536]).cases
    assert row.bottleneck == name
    assert row.utilisation > 0.9


def test_rows_of_the_default_machine_hold_too() -> None:
    machine = build_machine(parse_machine("ahbm"))
    names = ["pe_local", "pe_same_cube", "pe_next_cube", "pe_far_cube", "pe_other_sip", "hot_8"]
    record = run_probe(machine, names=names, sizes=[256, 16384])
    assert record.ok, record.failures
    by_size = [[row for row in record.cases if row.bytes == size] for size in (256, 16384)]
    for rows in by_size:
        latencies = [row.latency_ps for row in rows[:5]]
        assert all(near < far for near, far in pairwise(latencies))
