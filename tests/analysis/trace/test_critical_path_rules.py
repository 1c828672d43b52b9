"""Which of several activities that ended in time is taken as the reason: traces made by hand."""

from functools import cache

import numpy as np

from tests.language.bed import Bed
from tilewright.analysis.trace.critical_path import OwnerTrace, PathDelays, break_down_program
from tilewright.analysis.trace.servers import ServerKind, ServerTable
from tilewright.machine.coords import PeCoord

Row = tuple[int, int, int, int, int]
DELAYS = PathDelays(dispatch_ps=1_000, hit_ps=0, walk_ps=50_000, window_packets=1)
PE = PeCoord(0, 0, 0)
ISSUES = ((1, 0), (3, 2_000), (5, 4_000))  # packet and start


@cache
def servers() -> ServerTable:
    bed = Bed()
    bed.launch(lambda: None)  # its units are there from then on
    return ServerTable(bed.workspace.device)


def hold(unit: str, packet: int, ready_ps: int, start_ps: int, end_ps: int) -> Row:
    number = next(each.number for each in servers() if each.name == f"sip0.cube0.pe0.{unit}")
    return number, packet, ready_ps, start_ps, end_ps


def read(packet: int, start_ps: int, end_ps: int, *, queued_ps: int = 0) -> list[Row]:
    """A packet to the memory and back; it waits ``queued_ps`` in front of the link back."""
    out = next(each for each in servers() if each.leaves == PE)
    back = next(each for each in servers() if each.reaches == PE)
    memory = next(each for each in servers() if each.kind is ServerKind.MEMORY)
    tail_ps = end_ps - back.latency_ps
    return [
        (out.number, packet, start_ps, start_ps, start_ps + out.flit_ps),
        (memory.number, packet, start_ps + 2_000, start_ps + 2_000, start_ps + 2_000),
        (back.number, packet, tail_ps - 5_000 - queued_ps, tail_ps - 5_000, tail_ps),
    ]


def parts_of(*rows: Row, end_ps: int) -> dict[str, int]:
    trace = OwnerTrace(np.array(rows, np.int64), np.empty((0, 5), np.int64))
    path = break_down_program(trace, servers(), DELAYS, end_ps)
    assert path is not None
    assert path.start_ps == 0
    assert sum(path.parts_ps.values()) == path.end_ps == end_ps
    return {part: time_ps for part, time_ps in path.parts_ps.items() if time_ps}


def test_a_packet_of_a_full_channel_comes_after_the_one_that_made_room() -> None:
    """Not after a computation that happened to end when an access could have been sent."""
    first = read(2, 3_000, 40_000)
    vector = hold("vector", 4, 30_000, 30_000, 39_000)
    second = read(6, 40_000, 90_000)
    issues = [hold("cpu", n, time_ps, time_ps, time_ps + 2_000) for n, time_ps in ISSUES]
    found = parts_of(*issues, *first, vector, *second, end_ps=90_000)
    assert found == {"issue": 3_000, "memory_read": 87_000}


def test_a_packet_of_a_channel_with_room_comes_after_what_its_access_needed() -> None:
    vector = hold("vector", 2, 2_000, 2_000, 39_000)
    other = read(4, 7_000, 30_000)
    access = read(6, 40_000, 90_000)
    issues = [hold("cpu", n, time_ps, time_ps, time_ps + 2_000) for n, time_ps in ISSUES]
    found = parts_of(*issues, vector, *other, *access, end_ps=90_000)
    assert found == {"issue": 3_000, "vector": 37_000, "memory_read": 50_000}


def test_a_walk_is_looked_for_before_anything_that_ended_in_the_meantime() -> None:
    issues = [hold("cpu", 1, 0, 0, 2_000), hold("cpu", 3, 2_000, 2_000, 4_000)]
    vector = hold("vector", 2, 3_000, 3_000, 20_000)
    found = parts_of(*issues, vector, *read(4, 55_000, 90_000), end_ps=90_000)
    assert found == {"issue": 5_000, "translation": 50_000, "memory_read": 35_000}


def test_a_walk_that_was_under_way_already_is_shorter() -> None:
    """Then the last end within a walk's time is the reason."""
    issues = [hold("cpu", 1, 0, 0, 2_000), hold("cpu", 3, 2_000, 2_000, 4_000)]
    found = parts_of(*issues, *read(4, 25_000, 90_000), end_ps=90_000)
    assert found == {"issue": 5_000, "translation": 20_000, "memory_read": 65_000}


def test_a_command_is_issued_after_the_one_before_it_if_that_kept_it() -> None:
    issues = [hold("cpu", 1, 0, 0, 30_000), hold("cpu", 4, 30_000, 30_000, 32_000)]
    vector = [hold("vector", 2, 20_000, 20_000, 30_000), hold("vector", 5, 33_000, 33_000, 40_000)]
    found = parts_of(*issues, *vector, end_ps=40_000)
    assert found == {"issue": 33_000, "vector": 7_000}


def test_a_command_has_its_work_and_what_it_waited_for() -> None:
    """A read of command 0, then a product of command 1 that waits for it and for the unit."""
    issues = [hold("cpu", 1, 0, 0, 2_000), hold("cpu", 3, 2_000, 2_000, 4_000)]
    rows = [*issues, *read(2, 3_000, 40_000), hold("gemm", 4, 41_000, 50_000, 60_000)]
    trace = OwnerTrace(np.array(rows, np.int64), np.empty((0, 5), np.int64))
    path = break_down_program(trace, servers(), DELAYS, 60_000)
    assert path is not None
    assert path.commands_ps == {0: 40_000, 1: 20_000}


def test_waiting_for_a_unit_is_time_of_the_unit_and_for_a_link_queueing() -> None:
    issues = [hold("cpu", 1, 0, 0, 2_000), hold("cpu", 3, 2_000, 2_000, 4_000)]
    first = read(2, 3_000, 40_000, queued_ps=6_000)
    gemm = hold("gemm", 4, 41_000, 50_000, 60_000)
    found = parts_of(*issues, *first, gemm, end_ps=60_000)
    assert found == {"issue": 4_000, "memory_read": 31_000, "link_queueing": 6_000, "gemm": 19_000}


def test_what_nothing_explains_is_other_and_not_hidden() -> None:
    issues = [hold("cpu", 1, 0, 0, 2_000)]
    found = parts_of(*issues, hold("vector", 2, 10_000, 10_000, 11_000), end_ps=11_000)
    assert found == {"issue": 2_000, "other": 8_000, "vector": 1_000}


def test_what_goes_on_after_the_end_is_no_part_of_the_path() -> None:
    issues = [hold("cpu", 1, 0, 0, 2_000), hold("cpu", 9, 11_000, 11_000, 13_000)]
    vector = hold("vector", 2, 3_000, 3_000, 11_000)
    found = parts_of(*issues, vector, end_ps=11_000)
    assert found == {"issue": 3_000, "vector": 8_000}
