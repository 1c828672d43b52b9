"""Latencies of paths, step by step."""

from dataclasses import replace
from typing import Any

import pytest

from tilewright.device.least_time import between_ps, command_times
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.coords import PeCoord
from tilewright.programs.bound import Latency, Path, latency_of

PE, NEXT = PeCoord(0, 0, 0), PeCoord(0, 0, 1)
ISSUE_PS, DISPATCH_PS, WALK_PS = 2_000, 1_000, 50_000
# Closed row: RCD, CL, BL of a read; open row: CL and BL of a read, CWL and BL of a write.
CLOSED_PS, READ_PS, WRITE_PS = 19_500 + 10_000 + 1_000, 11_000, 6_000
FLIT_PS = 250  # 64 bytes at 256 GB/s
ROUTER_PS, WIRE_PS = 1_000, 3  # 0.3 mm at 0.01 ns/mm from a router to what sits on it
TRIP_PS = 2 * (2 * FLIT_PS + ROUTER_PS + 2 * WIRE_PS)  # two links there, two back


def machine_of(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


MACHINE = machine_of()
INSIDE = Path(pes=(PE,), commands=0)


def test_a_path_inside_a_pe_is_the_sum_of_its_steps() -> None:
    until_sent_ps = ISSUE_PS + WALK_PS + DISPATCH_PS
    load_ps = until_sent_ps + TRIP_PS + CLOSED_PS
    whole_ps = load_ps + 2 * DISPATCH_PS + 2 * DISPATCH_PS + TRIP_PS + WRITE_PS
    assert latency_of(MACHINE, INSIDE) == Latency(
        path_ps=whole_ps,
        hbm_ps=until_sent_ps + TRIP_PS + CLOSED_PS - 1_000,  # without the data
        link_ps=whole_ps - FLIT_PS,
        unit_ps=whole_ps,
        message_ps=whole_ps + 2 * DISPATCH_PS,
    )


@pytest.mark.parametrize(
    ("fields", "more_ps"),
    [
        ({"computes": False}, -3 * DISPATCH_PS),
        ({"walks": False}, -WALK_PS),
        ({"opens": False}, READ_PS - CLOSED_PS),
        ({"loads": 4}, 3 * (ISSUE_PS + DISPATCH_PS + TRIP_PS + READ_PS)),
    ],
)
def test_each_choice_of_a_path_has_its_steps(fields: dict[str, Any], more_ps: int) -> None:
    whole_ps = latency_of(MACHINE, INSIDE).path_ps
    assert latency_of(MACHINE, replace(INSIDE, **fields)).path_ps == whole_ps + more_ps


def test_a_translation_that_is_kept_takes_what_a_hit_takes() -> None:
    path = replace(INSIDE, walks=False)
    slow = latency_of(machine_of("pe.mmu.hit_ps=700"), path)
    assert slow.path_ps == latency_of(MACHINE, path).path_ps + 700


def test_commands_come_before_and_behind_and_rings_have_a_round_of_their_own() -> None:
    time = command_times(MACHINE, (PE,))[PE]
    command_ps = time.there_ps + time.back_ps
    for num_rounds in (1, 2):
        found = latency_of(MACHINE, replace(INSIDE, commands=num_rounds))
        assert found.path_ps == latency_of(MACHINE, INSIDE).path_ps + num_rounds * command_ps
        assert found.hbm_ps == latency_of(MACHINE, INSIDE).hbm_ps + num_rounds * command_ps


def test_the_last_pe_of_a_launch_decides_if_all_have_results() -> None:
    pes = tuple(PeCoord(0, 0, pe) for pe in range(4))
    times = command_times(MACHINE, pes)
    first, last = (time.there_ps + time.back_ps for time in (times[pes[0]], times[pes[-1]]))
    inside_ps = latency_of(MACHINE, INSIDE).path_ps
    all_of_them = latency_of(MACHINE, Path(pes=pes))
    assert all_of_them.path_ps == last + inside_ps > first + inside_ps
    assert latency_of(MACHINE, Path(pes=pes, all_store=False)).path_ps < all_of_them.path_ps
    assert all_of_them.unit_ps < all_of_them.path_ps  # the work may be the first PE's


def test_without_results_all_pes_answer() -> None:
    """So few latencies inside that the command of the last PE takes longer than any result."""
    machine = machine_of("cube.m_cpu.command_ps=900000")
    pes = tuple(PeCoord(0, 0, pe) for pe in range(4))
    last = command_times(machine, pes)[pes[-1]]
    found = latency_of(machine, Path(pes=pes, all_store=False))
    assert found.path_ps == last.there_ps + last.back_ps


def test_a_message_adds_the_way_between_two_pes() -> None:
    alone, together = (
        latency_of(MACHINE, replace(INSIDE, messages=messages)) for messages in ((), ((PE, NEXT),))
    )
    way_ps = between_ps(MACHINE, PE, NEXT)
    assert together.path_ps == alone.path_ps + 2 * DISPATCH_PS + way_ps


def test_a_slice_that_is_farther_away_takes_longer() -> None:
    near = latency_of(MACHINE, INSIDE).path_ps
    other = {PE: PeCoord(0, 3, 3)}
    for path in (replace(INSIDE, read_from=other), replace(INSIDE, write_to=other)):
        assert latency_of(MACHINE, path).path_ps > near


def test_a_users_memory_takes_no_time() -> None:
    machine = machine_of("cube.hbm.impl=tests.device.user_memory:OneByteAPicosecond")
    found = latency_of(machine, INSIDE)
    assert found.path_ps == latency_of(MACHINE, INSIDE).path_ps - CLOSED_PS - WRITE_PS


def test_a_launch_that_moves_nothing_takes_its_command() -> None:
    time = command_times(MACHINE, (PE,))[PE]
    path = Path(pes=(PE,), moves=False)
    assert latency_of(MACHINE, path).path_ps == time.there_ps + time.back_ps


def test_a_launch_without_programs_has_no_latency() -> None:
    assert latency_of(MACHINE, Path(pes=())) == Latency(0, 0, 0, 0, 0)
