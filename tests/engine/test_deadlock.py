from itertools import permutations

from tilewright.engine.core import WaitingPacket, WaitingTask
from tilewright.engine.deadlock import (
    Reason,
    WaitingProgram,
    find_cycle,
    report_deadlock,
    waiting_program,
)
from tilewright.engine.spec import Arbitration, ServerSpec

SERVERS = [ServerSpec(f"ring{number}", bytes_per_us=1, buffer_flits=16) for number in range(3)]
SIGNALS = ["go", "stop"]
OWNER = 1 << 40


def task(
    task_id: int,
    *,
    left: int = 0,
    afters: tuple[int, ...] = (),
    waits: tuple[tuple[int, int, int], ...] = (),
    raises: tuple[int, ...] = (),
) -> WaitingTask:
    return WaitingTask(task_id, left, afters, waits, raises)


def packet(packet_id: int, server: int, source: int = -1, *, channel: int = 0) -> WaitingPacket:
    return WaitingPacket(packet_id, packet_id, server, source, channel, channel, 16, False)


def test_a_program_waits_for_a_task_and_says_what_it_is() -> None:
    programs = [
        WaitingProgram(0, "a", OWNER + 5, "recv from west"),
        WaitingProgram(1, "b", OWNER + 5, ""),
    ]
    report = report_deadlock([task(OWNER + 5)], [], programs, SERVERS, SIGNALS)
    assert report.waiters[:2] == (
        "program 'a' waits for task 1:5 (recv from west)",
        "program 'b' waits for task 1:5",
    )


def waits_for(*programs: int) -> Reason:
    return Reason("a message", "kernel.py:7", lambda: "now", lambda: programs)


def test_programs_that_wait_for_each_other_are_told_line_by_line() -> None:
    programs = [
        waiting_program(0, "a", 5, waits_for(1)),
        waiting_program(1, "b", OWNER + 5, waits_for(0)),
        waiting_program(2, "c", 2 * OWNER, "its turn"),
    ]
    report = report_deadlock([], [], programs, SERVERS, SIGNALS)
    assert report.cycle == ("program 'a'", "program 'b'", "program 'a'")
    assert (
        "cycle: program 'a' waits at kernel.py:7 for a message by program 'b', "
        "which waits at kernel.py:7 for a message by program 'a'\n"
    ) in report.text


def test_a_program_that_waits_for_one_that_has_ended_is_in_no_cycle() -> None:
    programs = [waiting_program(0, "a", 5, waits_for(1))]
    assert report_deadlock([], [], programs, SERVERS, SIGNALS).cycle == ()


def test_a_reason_is_told_as_it_is_when_the_report_is_made() -> None:
    state = "4 slots free"
    reason = Reason("room", "kernel.py:7", lambda: state, lambda: ())
    state = "0 slots free"
    report = report_deadlock([], [], [waiting_program(0, "a", 5, reason)], SERVERS, SIGNALS)
    assert report.waiters == ("program 'a' waits for task 0:5 (0 slots free)",)


def test_a_task_names_the_signal_and_who_would_raise_it() -> None:
    tasks = [task(3, raises=(0,), afters=(OWNER + 5,)), task(OWNER + 5, waits=((0, 0, 2),))]
    report = report_deadlock(tasks, [], [], SERVERS, SIGNALS)
    assert report.waiters == (
        "task 0:3 waits for task 1:5",
        "task 1:5 waits for signal 'go' (0 of 2); task 0:3 would raise it",
    )
    assert report.cycle == ("task 0:3", "task 1:5", "task 0:3")


def test_a_signal_that_no_task_raises_makes_no_cycle() -> None:
    report = report_deadlock([task(0, waits=((1, 3, 4),))], [], [], SERVERS, SIGNALS)
    assert report.waiters == (
        "task 0:0 waits for signal 'stop' (3 of 4); no submitted task raises it",
    )
    assert report.cycle == ()
    assert "cycle" not in report.text


def test_a_task_that_would_raise_its_own_signal_is_a_cycle() -> None:
    report = report_deadlock([task(0, waits=((0, 0, 1),), raises=(0,))], [], [], SERVERS, SIGNALS)
    assert report.cycle == ("task 0:0", "task 0:0")


def test_a_packet_names_the_space_it_needs_and_who_holds_it() -> None:
    packets = [packet(7, 1, source=0), packet(9, 2, source=1), packet(11, 0, source=2)]
    report = report_deadlock([], packets, [], SERVERS, SIGNALS)
    assert report.waiters[0] == (
        "packet 0:7 in front of 'ring1' waits for 16 flits of channel 0 behind 'ring1', "
        "held by packet 0:9 in front of 'ring2'"
    )
    assert report.cycle == (
        "packet 0:7 in front of 'ring1'",
        "packet 0:9 in front of 'ring2'",
        "packet 0:11 in front of 'ring0'",
        "packet 0:7 in front of 'ring1'",
    )


def test_another_channel_holds_nothing() -> None:
    packets = [packet(7, 1, source=0), packet(9, 2, source=1, channel=1)]
    report = report_deadlock([], packets, [], SERVERS, SIGNALS)
    assert report.waiters[0].endswith("behind 'ring1', held by no waiting packet")


def test_a_packet_waits_for_its_turn_behind_the_first_of_its_queue() -> None:
    packets = [packet(9, 1, source=0), packet(7, 1)]  # one queue: inputs are merged
    report = report_deadlock([], packets, [], SERVERS, SIGNALS)
    assert report.waiters[0] == (
        "packet 0:7 in front of 'ring1' waits for its turn behind packet 0:9 in front of 'ring1'"
    )


def test_round_robin_keeps_the_queues_of_inputs_apart() -> None:
    servers = [
        ServerSpec(name, bytes_per_us=1, arbitration=Arbitration.ROUND_ROBIN) for name in "abc"
    ]
    report = report_deadlock([], [packet(9, 1, source=0), packet(7, 1)], [], servers, SIGNALS)
    assert all("its turn" not in line for line in report.waiters)


def test_a_task_waits_for_its_packets_and_a_program_for_all_of_that() -> None:
    packets = [packet(7, 1, source=0), packet(9, 0, source=1)]
    tasks = [task(7, left=1), task(9, left=1)]
    programs = [WaitingProgram(4, "a", 7, "")]
    report = report_deadlock(tasks, packets, programs, SERVERS, SIGNALS)
    assert report.waiters[:2] == (
        "program 'a' waits for task 0:7",
        "task 0:7 waits for 1 of its packets",
    )
    assert len(report.cycle) == 3


def test_the_report_does_not_depend_on_the_order_of_what_it_is_given() -> None:
    tasks = [
        task(0, afters=(1, 2)),
        task(1, waits=((0, 0, 1),)),
        task(2, waits=((1, 0, 1),), raises=(0,)),
        task(3, afters=(0,), raises=(1, 0)),
    ]
    reports = {report_deadlock(p, [], [], SERVERS, SIGNALS) for p in permutations(tasks)}
    assert len(reports) == 1


def test_a_long_list_is_cut_in_the_text_alone() -> None:
    tasks = [task(number, waits=((0, 0, 1),)) for number in range(25)]
    report = report_deadlock(tasks, [], [], SERVERS, SIGNALS)
    lines = report.text.split("\n")
    assert len(report.waiters) == 25
    assert lines[0] == "25 waiting"
    assert lines[-2:] == ["... and 5 more", "so nothing can go on"]
    assert len(lines) == 23


def test_many_holders_are_counted_after_the_first_three() -> None:
    packets = [packet(0, 1, source=0), *(packet(number, 2, source=1) for number in range(1, 7))]
    line = report_deadlock([], packets, [], SERVERS, SIGNALS).waiters[0]
    assert line.endswith(
        "held by packet 0:1 in front of 'ring2' and packet 0:2 in front of 'ring2' "
        "and packet 0:3 in front of 'ring2' and 3 more"
    )


def test_a_chain_of_any_length_is_searched() -> None:
    length = 50_000
    nodes = [(1, number) for number in range(length)]
    cycle = find_cycle(nodes, lambda node: [(1, (node[1] + 1) % length)])
    assert len(cycle) == length + 1
    assert find_cycle(nodes, lambda node: [(1, node[1] + 1)] if node[1] < length - 1 else []) == ()


def test_a_cycle_starts_with_its_least_member() -> None:
    follows = {(1, 0): [(1, 9)], (1, 9): [(1, 4)], (1, 4): [(1, 9)]}
    assert find_cycle([(1, 0)], lambda node: follows[node]) == ((1, 4), (1, 9), (1, 4))
