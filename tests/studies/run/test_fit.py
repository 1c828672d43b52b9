"""Ready programs on machines that have no room for their defaults."""

import os
from dataclasses import replace
from typing import Any

import pytest

from tests.programs.small import SMALL
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.errors import BenchError, OutOfMemoryError, TileRoomError
from tilewright.machine import build_machine, parse_machine
from tilewright.machine.presets import list_presets
from tilewright.programs import PROGRAMS
from tilewright.records import RunRecord
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source
from tilewright.studies.run.sweep import run_sweep

SMALL_TCM = ("pe.tcm.reserved_bytes=1 KiB", "pe.tcm.capacity_bytes=17 KiB")
LEAST = (  # of everything that a machine file may have
    *SMALL_TCM,
    "pe.registers.capacity_bytes=1 KiB",
    "pe.queue_commands=1",
    "pe.mmu.page_bytes=512",
    "cube.hbm.capacity_bytes=4 MiB",
)
ONE_PE = (
    *("sip.columns=1", "sip.rows=1", "cube.pes=1", "cube.hbm.pseudo_channels=8"),
    "cube.hbm.capacity_bytes=1 GiB",
)
RUNS_ALL = os.environ.get("HYPOTHESIS_PROFILE") == "all"
CHEAP = ("ahbm-small", "crossbar-chip")  # presets
SLOW_AT_DEFAULT = {"gpt3_qkv", "ring_attention", "decode_merge", "flash_attention", "stream"}


def request_of(name: str, preset: str, changes: tuple[str, ...] = (), **given: Any) -> RunRequest:
    source = find_source(name)
    values = {each.name: each.default for each in source.parameters} | given
    return RunRequest(
        source, values, build_machine(parse_machine(preset, changes)), preset, changes,
        engine=resolve_engine(AUTO, native_built=native_built()),
        free=frozenset(values.keys() - given.keys()),
    )  # fmt: skip


def run_once(name: str, preset: str, changes: tuple[str, ...] = (), **given: Any) -> RunRecord:
    return run_program(request_of(name, preset, changes, **given), RunWatch(is_once=True))


def test_a_default_that_does_not_fit_is_halved_and_told() -> None:
    record = run_once("softmax", "ahbm-small", SMALL_TCM, rows=64, columns=4096)
    assert record.ok
    assert record.parameters["block_rows"] == 2
    assert "to fit this machine: block_rows=2 (default 8)" in record.notes


def test_a_value_that_the_user_gave_stays_and_is_refused() -> None:
    with pytest.raises(TileRoomError, match=r"a tile fp16\[8, 4096\] .*held: nothing, expected"):
        run_once("softmax", "ahbm-small", SMALL_TCM, rows=64, columns=4096, block_rows=8)
    with pytest.raises(BenchError, match="cubes=4, expected at most the 1"):
        run_once("flash_attention", "crossbar-chip", cubes=4, length=64)


def test_what_the_smallest_default_does_not_fit_says_what_was_tried() -> None:
    with pytest.raises(
        TileRoomError, match=r"; tried down to block_rows=1 \(default 8\), expected"
    ):
        run_once("softmax", "ahbm-small", SMALL_TCM, rows=64, columns=16384)


def test_tensors_that_no_memory_has_room_for_become_smaller() -> None:
    tiny = ("pe.mmu.page_bytes=4 KiB", "cube.hbm.capacity_bytes=4 MiB")
    record = run_once("stream", "ahbm-small", tiny)
    assert record.ok
    assert "to fit this machine: elements=262144 (default 2097152)" in record.notes
    with pytest.raises(OutOfMemoryError):
        run_once("stream", "ahbm-small", tiny, elements=2**21)


def test_nothing_is_told_where_the_defaults_fit() -> None:
    record = run_once("gemm_single_pe", "ahbm-small")
    assert not record.notes
    assert record.parameters == {
        each.name: each.default for each in PROGRAMS[record.what.program].parameters
    }


def test_each_point_of_a_sweep_says_what_was_changed() -> None:
    request = request_of("softmax", "ahbm-small", SMALL_TCM, rows=64)
    points = [{"columns": 64}, {"columns": 4096}]
    found = run_sweep(request, points, RunWatch(is_once=True))
    assert [point.fitted for point in found.points] == [
        None,
        "to fit this machine: block_rows=2 (default 8)",
    ]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "changes", [LEAST, ONE_PE, ("sip.count=2", "pe.queue_commands=2"), ("sip.count=3", *LEAST)]
)
def test_every_ready_program_runs_on_the_least_machines(
    name: str, changes: tuple[str, ...]
) -> None:
    """Sizes are small ones, and may become smaller still."""
    request = request_of(name, "ahbm-small", changes)
    values = {**request.parameters, **SMALL[name]}
    record = run_program(replace(request, parameters=values), RunWatch(is_once=True))
    assert record.ok


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("preset", list_presets() if RUNS_ALL else CHEAP)
def test_every_ready_program_runs_on_every_preset(name: str, preset: str) -> None:
    """At its defaults, as far as they fit; without ``make test-all`` slow ones at a small size."""
    given = SMALL[name] if name in SLOW_AT_DEFAULT and not RUNS_ALL else {}
    request = request_of(name, preset)
    values = {**request.parameters, **given}
    record = run_program(replace(request, parameters=values), RunWatch(is_once=True))
    assert record.ok
    assert record.values_ok is True
