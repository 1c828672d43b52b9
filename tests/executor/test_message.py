"""Messages between programs: values, order, full rings, and what is said when they do not meet."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tilewright import language as tl
from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.errors import DeadlockError, DeviceError, KernelError
from tilewright.executor.neighbour import Neighbours
from tilewright.machine import PeCoord, build_machine, parse_machine
from tilewright.runtime.workspace import LaunchResult, Workspace

Array = np.ndarray[Any, Any]
MACHINE = build_machine(parse_machine("ahbm"))
SMALL = RingSpec(slots=2, slot_bytes=512)


def ring_of(pes: Sequence[PeCoord], spec: RingSpec) -> Neighbours:
    """Every PE has the next one in the east and the one before in the west."""
    count = len(pes)
    table = {
        pe: {"E": pes[(place + 1) % count], "W": pes[(place - 1) % count]}
        for place, pe in enumerate(pes)
    }
    places = [(pe, direction) for pe in pes for direction in "EW"]
    addresses = {place: number * spec.num_bytes for number, place in enumerate(places)}
    return Neighbours(table, spec, addresses)


def pes_of(count: int) -> list[PeCoord]:
    return [PeCoord(0, place // 8, place % 8) for place in range(count)]


def run(
    kernel: Callable[..., Any],
    values: Array,
    *,
    count: int,
    spec: RingSpec = SMALL,
    engine: EngineKind | Auto = AUTO,
    neighbours: Neighbours | None = None,
) -> tuple[Array, LaunchResult]:
    """A kernel over its input, at a high address away from rings, and an output of its shape."""
    workspace = Workspace(MACHINE, engine)
    pes = pes_of(count)
    home = [PeCoord(1, 0, 0)]
    x, y = (workspace.place(array, home) for array in (values, np.zeros_like(values)))
    told = ring_of(pes, spec) if neighbours is None else neighbours
    result = workspace.launch(kernel, x, y, grid=(count,), pes=pes, neighbours=told)
    return workspace.read(y), result


def all_gather_sum(x: Any, y: Any) -> None:
    """Every program adds up what all have, sent round the ring."""
    here = tl.program_id(0)
    block = tl.load(x + here * 300, shape=(300,))
    total = block
    for _ in range(tl.num_programs(0) - 1):
        tl.send("E", block)
        block = tl.recv("W", (300,), tl.float32)
        total = total + block
    tl.store(tl.ref(y + here * 300, (300,)), total)


@pytest.mark.parametrize("kind", RingKind)
@pytest.mark.parametrize("count", [2, 5])
def test_blocks_go_round_a_ring(kind: RingKind, count: int) -> None:
    values = np.arange(count * 300, dtype=np.float32).reshape(count, 300)
    found, _ = run(all_gather_sum, values, count=count, spec=RingSpec(kind, 2, 512))
    np.testing.assert_array_equal(found, np.broadcast_to(values.sum(0), values.shape))


@pytest.mark.parametrize("kind", RingKind)
def test_messages_reach_other_cubes_and_sips(kind: RingKind) -> None:
    workspace = Workspace(MACHINE)
    pes = [PeCoord(0, 0, 0), PeCoord(0, 15, 3), PeCoord(1, 2, 1)]
    values = np.arange(900, dtype=np.float32).reshape(3, 300)
    home = [PeCoord(1, 0, 0)]
    x, y = (workspace.place(array, home) for array in (values, np.zeros_like(values)))
    neighbours = ring_of(pes, RingSpec(kind, 2, 512))
    workspace.launch(all_gather_sum, x, y, grid=(3,), pes=pes, neighbours=neighbours)
    np.testing.assert_array_equal(workspace.read(y), np.broadcast_to(values.sum(0), values.shape))


def test_a_message_larger_than_its_ring_streams_at_nearly_the_rate_of_the_links() -> None:
    """256 KiB at 256 GB/s from router to router, once they are in the sender's TCM."""
    num_elements = 2**16

    def kernel(_x: Any, _y: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.zeros((num_elements,), tl.float32))
        else:
            tl.recv("W", (num_elements,), tl.float32)

    _, result = run(kernel, np.zeros(8, np.float32), count=2, spec=RingSpec())
    staged_ps, wire_ps = 512_000, 1_024_000
    assert staged_ps + wire_ps < result.latency_ps < staged_ps + wire_ps * 6 // 5


def test_rings_in_faster_memories_are_faster() -> None:
    values = np.zeros((4, 300), np.float32)
    tcm, hbm = (
        run(all_gather_sum, values, count=4, spec=RingSpec(kind))[1].latency_ps
        for kind in (RingKind.TCM, RingKind.HBM)
    )
    assert tcm < hbm


@needs_both_engines
@pytest.mark.parametrize("kind", RingKind)
def test_both_engines_take_the_same_time(kind: RingKind) -> None:
    values = np.arange(900, dtype=np.float32).reshape(3, 300)
    times = [
        run(all_gather_sum, values, count=3, spec=RingSpec(kind, 2, 512), engine=engine)[1].end_ps
        for engine in (EngineKind.REFERENCE, EngineKind.NATIVE)
    ]
    assert times[0] == times[1]


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    slots=st.integers(1, 4),
    slot_bytes=st.sampled_from([64, 100, 512]),
    backpressure=st.sampled_from(Backpressure),
)
def test_messages_keep_their_values_and_order_however_often_the_ring_wraps(
    sizes: list[int], slots: int, slot_bytes: int, backpressure: Backpressure
) -> None:
    """The receiver copies late, when the sender has long gone on."""
    spec = RingSpec(slots=slots, slot_bytes=slot_bytes, backpressure=backpressure)
    total = sum(sizes)

    def kernel(x: Any, y: Any) -> None:
        offset = 0
        received = []
        for size in sizes:
            if tl.program_id(0) == 0:
                tl.send("E", tl.load(x + offset, shape=(size,)))
            else:
                received.append((offset, size, tl.recv("W", (size,), tl.float32)))
            offset += size
        for offset, size, block in received:
            tl.store(tl.ref(y + offset, (size,)), block)

    values = np.arange(total, dtype=np.float32)
    found, _ = run(kernel, values, count=2, spec=spec)
    np.testing.assert_array_equal(found, values)


def test_a_received_block_is_what_was_sent_though_its_source_changes() -> None:
    def kernel(x: Any, y: Any) -> None:
        if tl.program_id(0) == 0:
            block = tl.load(x, shape=(8,))
            tl.send("E", block)
            tl.store(tl.ref(x, (8,)), block + 100.0)
        else:
            block = tl.recv("W", (8,), tl.float32)
            tl.store(tl.ref(y, (8,)), block)

    values = np.arange(8, dtype=np.float32)
    found, _ = run(kernel, values, count=2)
    np.testing.assert_array_equal(found, values)


def test_what_is_received_asynchronously_is_there_after_wait() -> None:
    def kernel(x: Any, y: Any) -> None:
        here = tl.program_id(0)
        handle = tl.recv_async("W", (16,), tl.float32)
        tl.send("E", tl.load(x + here * 16, shape=(16,)))
        tl.store(tl.ref(y + here * 16, (16,)), tl.wait(handle))

    values = np.arange(48, dtype=np.float32).reshape(3, 16)
    found, _ = run(kernel, values, count=3)
    np.testing.assert_array_equal(found, np.roll(values, 1, axis=0))


def test_a_message_that_is_looked_at_stays_for_the_next_receive() -> None:
    def kernel(x: Any, y: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.load(x, shape=(8,)))
            tl.send("E", tl.load(x + 8, shape=(8,)))
        else:
            seen = tl.recv_no_consume("W", (8,), tl.float32)
            first = tl.recv("W", (8,), tl.float32)
            tl.store(tl.ref(y, (8,)), seen + first)
            tl.store(tl.ref(y + 8, (8,)), tl.recv("W", (8,), tl.float32))

    values = np.arange(16, dtype=np.float32)
    found, _ = run(kernel, values, count=2)
    np.testing.assert_array_equal(found, np.concatenate([2 * values[:8], values[8:]]))


def test_a_message_larger_than_its_ring_cannot_be_looked_at() -> None:
    def kernel(x: Any, _y: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.load(x, shape=(512,)))
        else:
            tl.recv_no_consume("W", (512,), tl.float32)

    with pytest.raises(KernelError, match="4 fragments, in a ring of 2"):
        run(kernel, np.zeros(512, np.float32), count=2)


def test_a_receive_with_a_destination_also_stores_the_message() -> None:
    def kernel(x: Any, y: Any) -> None:
        here = tl.program_id(0)
        tl.send("E", tl.load(x + here * 8, shape=(8,)))
        tl.recv("W", (8,), tl.float32, dst=tl.ref(y + here * 8, (8,)))

    values = np.arange(24, dtype=np.float32).reshape(3, 8)
    found, _ = run(kernel, values, count=3)
    np.testing.assert_array_equal(found, np.roll(values, 1, axis=0))


def test_with_two_pes_east_and_west_are_different_rings() -> None:
    def kernel(x: Any, y: Any) -> None:
        here = tl.program_id(0)
        tl.send("E", tl.load(x + here * 2, shape=(1,)))
        tl.send("W", tl.load(x + here * 2 + 1, shape=(1,)))
        tl.store(tl.ref(y + here * 2, (1,)), tl.recv("E", (1,), tl.float32))
        tl.store(tl.ref(y + here * 2 + 1, (1,)), tl.recv("W", (1,), tl.float32))

    found, _ = run(kernel, np.array([[1, 2], [3, 4]], np.float32), count=2)
    assert found.tolist() == [[4, 3], [2, 1]]


def test_without_a_direction_each_has_its_turn() -> None:
    def kernel(x: Any, y: Any) -> None:
        here = tl.program_id(0)
        for place, direction in enumerate("EWEW"):
            tl.send(direction, tl.load(x + here * 4 + place, shape=(1,)))
        for place in range(4):
            tl.store(tl.ref(y + here * 4 + place, (1,)), tl.recv(None, (1,), tl.float32))

    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    found, _ = run(kernel, values, count=3, spec=RingSpec())
    for here in range(3):
        from_east, from_west = values[(here + 1) % 3, 1::2], values[(here - 1) % 3, 0::2]
        expected = np.ravel(np.stack([from_east, from_west], axis=1))
        assert found[here].tolist() == expected.tolist()


def test_only_what_was_begun_can_be_waited_for() -> None:
    def kernel(x: Any, _y: Any) -> None:
        tl.wait(x)

    refused(kernel, "expected a handle of something that was begun")


def late_receiver(x: Any, y: Any) -> None:
    if tl.program_id(0) == 0:
        for _ in range(6):
            tl.send("E", tl.load(x, shape=(128,)))
        tl.store(tl.ref(y, (128,)), tl.load(x, shape=(128,)))
    else:
        block = tl.load(x, shape=(128,))
        for _ in range(400):
            block = block * 0.5
        if int(tl.sum(block * 0.0, 0)) == 0:
            for _ in range(6):
                tl.recv("W", (128,), tl.float32)


def test_a_full_ring_holds_its_sender_until_slots_are_free() -> None:
    values = np.zeros(128, np.float32)
    _, few = run(late_receiver, values, count=2, spec=RingSpec(slots=2, slot_bytes=512))
    _, many = run(late_receiver, values, count=2, spec=RingSpec(slots=8, slot_bytes=512))
    assert few.latency_ps > many.latency_ps


def test_a_sleeping_sender_goes_on_a_command_after_its_credit_and_a_polling_one_at_its_look() -> (
    None
):
    values = np.zeros(128, np.float32)
    times = {
        mode: run(late_receiver, values, count=2, spec=RingSpec(slots=2, backpressure=mode))[1]
        for mode in Backpressure
    }
    sleep, poll = times[Backpressure.SLEEP].end_ps, times[Backpressure.POLL].end_ps
    look_ps = MACHINE.spec.pe.cpu.command_ps
    assert 0 < sleep - poll <= look_ps * 4


def refused(kernel: Callable[..., Any], message: str, **options: Any) -> None:
    error = options.pop("error", KernelError)
    with pytest.raises(error, match=message):
        run(kernel, np.zeros(8, np.float32), count=2, **options)


def test_a_message_of_another_shape_or_dtype_is_named_with_both_lines() -> None:
    def kernel(x: Any, _y: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.load(x, shape=(8,)))
        else:
            tl.recv("W", (4, 2), tl.float32)

    lines = r"test_message.py:\d+ in kernel.*fp32\[8\] is sent at .*test_message.py:\d+ in kernel"
    refused(kernel, lines + r", expected fp32\[4, 2\]")


def test_an_unknown_direction_is_refused_with_those_there_are() -> None:
    def kernel(x: Any, _y: Any) -> None:
        tl.send("up", tl.load(x, shape=(8,)))

    refused(kernel, "found the direction 'up' of sip0.cube0.pe0, expected one of E, W")


def test_a_message_without_neighbours_is_refused() -> None:
    def kernel(x: Any, _y: Any) -> None:
        tl.send("E", tl.load(x, shape=(8,)))

    refused(kernel, "expected one of|a PE that has neighbours", neighbours=Neighbours({}))
    workspace = Workspace(MACHINE)
    x = workspace.place(np.zeros(8, np.float32), pes_of(1))
    with pytest.raises(KernelError, match="a message in a launch without neighbours"):
        workspace.launch(kernel, x, x, grid=(1,), pes=pes_of(1))


def test_rings_that_do_not_fit_are_refused_before_anything_runs() -> None:
    def kernel(x: Any, _y: Any) -> None:
        tl.send("E", tl.load(x, shape=(8,)))

    spec = RingSpec(slots=1024, slot_bytes=4096)
    refused(kernel, "expected room in the reserved part", spec=spec, error=DeviceError)


def test_a_neighbour_that_does_not_know_the_way_back_is_refused() -> None:
    def kernel(x: Any, _y: Any) -> None:
        tl.send("E", tl.load(x, shape=(8,)))

    first, second = pes_of(2)
    refused(kernel, "expected one way back", neighbours=Neighbours({first: {"E": second}}))
    refused(kernel, "itself as 'E'", neighbours=Neighbours({first: {"E": first}}))
    away = PeCoord(0, 3, 0)
    refused(kernel, "which runs no program", neighbours=Neighbours({first: {"E": away}}))


def test_programs_that_wait_for_each_other_are_reported_with_directions_and_lines() -> None:
    def kernel(_x: Any, _y: Any) -> None:
        block = tl.recv("W", (8,), tl.float32)
        tl.send("E", block)

    message = (
        r"program \(0,\) of kernel on sip0.cube0.pe0 waits for message 0 from 'W'"
        r" \(sip0.cube0.pe1\) at .*test_message.py:\d+ in kernel since 0 ps;"
        r" ring sip0.cube0.pe0.ipcq.W.*2 of 2 slots free, 0 fragments have arrived,"
        r" 0 sent, 1 expected"
    )
    refused(kernel, message, error=DeadlockError)


def deadlock_of(kernel: Callable[..., Any], count: int, spec: RingSpec = SMALL) -> DeadlockError:
    with pytest.raises(DeadlockError) as caught:
        run(kernel, np.zeros(64, np.float32), count=count, spec=spec)
    return caught.value


def test_the_circle_in_which_programs_wait_is_told_with_their_lines() -> None:
    def kernel(_x: Any, _y: Any) -> None:
        block = tl.recv("W", (8,), tl.float32)
        tl.send("E", block)

    error = deadlock_of(kernel, 3)
    waits = r"waits at \S*test_message.py:\d+ in kernel for message 0 from 'W' by "
    circle = ", which ".join(
        rf"{waits}program 'kernel on sip0.cube0.pe{place}'" for place in (2, 1, 0)
    )
    assert re.search(rf"cycle: program 'kernel on sip0.cube0.pe0' {circle}\n", str(error))
    assert len(error.cycle) == 4


def test_a_receiver_whose_sender_has_ended_waits_in_no_circle() -> None:
    def kernel(_x: Any, _y: Any) -> None:
        if tl.program_id(0) == 0:
            tl.recv("E", (8,), tl.float32)

    assert deadlock_of(kernel, 2).cycle == ()


def test_polling_for_room_that_never_comes_ends_with_who_polls_and_since_when() -> None:
    def kernel(x: Any, _y: Any) -> None:
        for _ in range(3):
            tl.send("E", tl.load(x, shape=(8,)))
        tl.recv("W", (8,), tl.float32)

    polls = RingSpec(slots=2, slot_bytes=512, backpressure=Backpressure.POLL)
    error = deadlock_of(kernel, 2, polls)
    place = r"polls for room to send to 'E' \(sip0.cube0.pe1\) at \S*test_message.py:\d+ in kernel"
    assert re.search(
        rf"{place} since [1-9]\d* ps; ring \S+.*: 0 of 2 slots free, 2 fragments have arrived",
        error.waiters[0],
    )


def test_a_sender_that_nobody_receives_from_is_reported_as_waiting_for_room() -> None:
    def kernel(x: Any, _y: Any) -> None:
        if tl.program_id(0) == 0:
            for _ in range(3):
                tl.send("E", tl.load(x, shape=(8,)))
        else:
            tl.recv("E", (8,), tl.float32)

    refused(kernel, "waits for room to send to 'E'.*0 of 2 slots free", error=DeadlockError)
