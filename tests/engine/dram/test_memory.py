"""Banked memories against the model that goes burst by burst, and what they refuse."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine, needs_both_engines
from tests.oracles_hbm.burst_model import Request, run_bursts
from tests.oracles_hbm.loads import (
    HBM4_CLOCKS,
    Tapped,
    cases,
    drive,
    loads,
    refreshes,
    slice_spec,
    streak_cases,
    tight_cases,
    timing_of,
)
from tilewright.engine import EngineKind
from tilewright.engine.dram.memory import BankedMemory, SimpleMemory
from tilewright.engine.dram.spec import BankedRefreshSpec, BankedSpec, RefreshScope, SimpleSpec
from tilewright.errors import EngineError

pytestmark = pytest.mark.timeout(600)  # `make test-all` runs many more examples
assert settings.default is not None
many = settings(max_examples=2 * settings.default.max_examples)

Case = tuple[BankedSpec, list[Request]]
CLOCKS = timing_of(HBM4_CLOCKS, 1)  # a clock of one ps
REFRESH = BankedRefreshSpec(RefreshScope.ALL_BANKS, interval_ps=780, first_ps=97, busy_ps=106)


@given(cases())
def test_every_load_is_served_as_burst_by_burst(case: Case) -> None:
    spec, load = case
    assert drive(BankedMemory(spec, EngineKind.REFERENCE), load) == run_bursts(spec, load)


@many
@given(st.one_of(tight_cases(), streak_cases()))
def test_runs_that_something_happens_in_are_served_as_burst_by_burst(case: Case) -> None:
    spec, load = case
    assert drive(BankedMemory(spec, EngineKind.REFERENCE), load) == run_bursts(spec, load)


@every_engine
def test_a_row_may_close_at_the_instant_that_ends_a_drain(kind: EngineKind) -> None:
    """The last burst of a drain goes after the row commands of its instant, within a run too."""
    fast = dict.fromkeys(("cl", "rcd_read", "rcd_write", "ras", "rc", "rrd_s", "rrd_l", "faw"), 0)
    clocks = HBM4_CLOCKS | fast | {"cwl": 4, "rp": 3, "rtw": 0, "wr": 0, "rtp": 1}
    spec = replace(
        slice_spec(timing_of(clocks, 1), pseudo_channels=1),
        banks=2,
        row_bytes=256,
        stack_ids=1,
        drain_high_bursts=9,
        drain_low_bursts=7,
    )
    writes = [Request(0, n, True, chunk * 256, 256) for n, chunk in enumerate((0, 0, 4, 2))]
    load = [*writes, Request(0, 4, True, 0, 160), Request(0, 5, False, 512, 256)]
    found = drive(BankedMemory(spec, kind), load)
    assert found == run_bursts(spec, load)
    assert found.served[4].done_ps == 109


@every_engine
def test_no_row_is_opened_for_writes_once_a_drain_is_over(kind: EngineKind) -> None:
    spec = slice_spec(replace(CLOCKS, rtw_ps=0), pseudo_channels=1)
    spec = replace(spec, drain_high_bursts=8, drain_low_bursts=4)
    # writes at 19, 24, 26, 28: four are left and the read waits; what comes at 29 is too late
    load = [
        Request(0, 0, True, 0, 256),
        Request(0, 1, False, 256, 32),
        Request(29, 2, True, 4096, 32),
    ]
    found = drive(BankedMemory(spec, kind), load)
    assert found == run_bursts(spec, load)
    read_ps = found.served[1].done_ps - 22
    assert found.served[2].done_ps == read_ps + 19 + 12


@needs_both_engines
@many
@given(st.one_of(cases(), tight_cases()))
def test_both_cores_answer_every_call_alike(case: Case) -> None:
    check_both_cores_alike(*case)


@needs_both_engines
@many
@given(streak_cases())
def test_both_cores_serve_streaks_alike(case: Case) -> None:
    check_both_cores_alike(*case)


def check_both_cores_alike(spec: BankedSpec, load: list[Request]) -> None:
    reference = Tapped(BankedMemory(spec, EngineKind.REFERENCE))
    native = Tapped(BankedMemory(spec, EngineKind.NATIVE))
    assert drive(reference, load) == drive(native, load)
    assert reference.answers == native.answers


@st.composite
def slice_cases(draw: st.DrawFn) -> Case:
    """Streams of several chunks in a slice like the default machine's, with its queues."""
    refresh = draw(st.sampled_from((REFRESH, None))) or draw(refreshes(CLOCKS))
    spec = slice_spec(CLOCKS, refresh, pseudo_channels=2)
    bases = draw(st.lists(st.integers(0, 2**22), min_size=1, max_size=3))
    count = draw(st.integers(10, 24))
    writers = draw(st.sets(st.integers(0, len(bases) - 1)))
    pause_ps = draw(st.sampled_from((0, 7, 60)))
    load = []
    for access_id in range(count):
        stream = access_id % len(bases)
        address = bases[stream] + access_id // len(bases) * 1024
        arrive_ps = access_id * pause_ps
        load.append(Request(arrive_ps, access_id, stream in writers, address, 1024))
    return spec, load


@settings(max_examples=settings.default.max_examples // 20)
@given(slice_cases())
def test_streams_through_a_slice_are_served_as_burst_by_burst(case: Case) -> None:
    spec, load = case
    assert drive(BankedMemory(spec), load) == run_bursts(spec, load)


@every_engine
def test_a_refresh_in_the_middle_of_a_run_holds_the_rest_up(kind: EngineKind) -> None:
    refresh = BankedRefreshSpec(RefreshScope.ALL_BANKS, 10_000, first_ps=50, busy_ps=530)
    spec = slice_spec(CLOCKS, refresh, pseudo_channels=1)
    load = [Request(0, 0, False, 0, 256)]
    found = drive(BankedMemory(spec, kind), load)
    assert found == run_bursts(spec, load)
    # four reads until 50; RAS is over at 62, RP later the refresh, then all from the start
    assert found.served[0].refresh_ps == (62 - 50) + 33 + 530


@every_engine
def test_a_memory_that_was_idle_for_long_is_refreshed_on_time(kind: EngineKind) -> None:
    refresh = replace(REFRESH, first_ps=100)
    spec = slice_spec(CLOCKS, refresh, pseudo_channels=1)
    due_ps = 100 + 10**12 * 780
    memory = BankedMemory(spec, kind)
    found = drive(memory, [Request(0, 0, False, 0, 32), Request(due_ps, 1, False, 0, 32)])
    assert found.served[1].refresh_ps == 106
    assert found.served[1].done_ps == due_ps + 106 + 39 + 22


@every_engine
@pytest.mark.parametrize("scope", RefreshScope)
def test_idle_times_of_any_length_keep_the_order_of_refreshes(
    kind: EngineKind, scope: RefreshScope
) -> None:
    spec = slice_spec(CLOCKS, replace(REFRESH, scope=scope), pseudo_channels=1)
    load = [Request(997 * n * n, n, n % 3 == 0, 4096 * n, 256) for n in range(8)]
    assert drive(BankedMemory(spec, kind), load) == run_bursts(spec, load)


@every_engine
def test_bursts_of_an_older_access_go_first_when_both_can(kind: EngineKind) -> None:
    spec = slice_spec(CLOCKS, pseudo_channels=1)
    memory = BankedMemory(spec, kind)
    for access_id in (9, 4, 7):  # offered in any order, the lower id is older
        memory.accept(0, access_id, False, 256 * access_id, 256)
    done = drive_out(memory)
    assert [access_id for access_id, _, _ in sorted(done, key=lambda row: row[1])] == [4, 7, 9]


@every_engine
@pytest.mark.parametrize("other_row", [32 * 1024, 2 * 1024])
def test_an_older_access_offered_later_decides_before_one_whose_row_is_open(
    kind: EngineKind, other_row: int
) -> None:
    """The other row is in the open bank, or in one that is closed."""
    spec = slice_spec(CLOCKS, pseudo_channels=1)
    load = [
        Request(0, 0, False, 0, 256),
        Request(1000, 5, False, 0, 256),
        Request(1000, 3, False, other_row, 256),
    ]
    assert drive(BankedMemory(spec, kind), load) == run_bursts(spec, load)


@every_engine
def test_what_is_accepted_after_the_decisions_of_an_instant_is_younger(kind: EngineKind) -> None:
    spec = slice_spec(CLOCKS, pseudo_channels=1)
    memory = BankedMemory(spec, kind)
    memory.accept(0, 9, False, 0, 256)
    done = memory.advance(0)
    memory.accept(0, 4, False, 256, 256)
    done += drive_out(memory)
    assert [access_id for access_id, _, _ in sorted(done, key=lambda row: row[1])] == [9, 4]


def drive_out(memory: BankedMemory) -> list[tuple[int, int, int]]:
    done = []
    while (now_ps := memory.next_ps()) is not None:
        done += memory.advance(now_ps)
    return done


@every_engine
def test_the_door_opens_at_the_time_that_room_ps_says(kind: EngineKind) -> None:
    spec = replace(slice_spec(CLOCKS, pseudo_channels=1), read_queue_bursts=8)
    memory = BankedMemory(spec, kind)
    memory.accept(0, 0, False, 0, 256)
    assert not memory.can_accept(0, False, 256, 96)
    assert memory.room_ps(False, 256, 96) is None
    memory.advance(0)
    while (room_ps := memory.room_ps(False, 256, 96)) is None:
        memory.advance(memory.next_ps() or 0)
    # the second bank opens RRD_S after the first, then three bursts have to go
    assert room_ps == 39 + 5 + 2
    assert not memory.can_accept(room_ps, False, 256, 96)
    memory.advance(room_ps)
    assert memory.can_accept(room_ps, False, 256, 96)
    assert not memory.can_accept(room_ps, False, 256, 128)


@every_engine
def test_writes_are_drained_from_the_high_mark_down_to_the_low_one(kind: EngineKind) -> None:
    spec = slice_spec(CLOCKS, pseudo_channels=1)
    reads = [Request(0, n, False, 256 * n, 256) for n in range(40)]
    writes = [Request(1, 100 + n, True, 2**20 + 256 * n, 256) for n in range(12)]
    served = drive(BankedMemory(spec, kind), reads + writes).served
    last_read = max(served[n].done_ps for n in range(40))
    early = [n for n in range(12) if served[100 + n].done_ps < last_read]
    # 96 bursts down to 32 are 8 chunks, and one more may be begun by then; the rest has to wait
    assert len(early) in (8, 9)


# --- what is refused


def refusals() -> list[tuple[str, Callable[[], object], str]]:
    spec = slice_spec(CLOCKS)
    tight = replace(REFRESH, interval_ps=300)
    return [
        ("map", lambda: replace(spec, address_map=("burst", "row")), "list every field once"),
        ("drain", lambda: replace(spec, drain_low_bursts=96), "drain_low_bursts <"),
        ("banks", lambda: replace(spec, banks=32), "128 banks in a pseudo-channel"),
        ("row", lambda: replace(spec, row_bytes=1000), "a multiple of burst_bytes = 32"),
        ("chunk", lambda: replace(spec, interleave_bytes=96), "one row of all banks = 32768"),
        ("refresh", lambda: replace(spec, refresh=tight), "an interval above"),
        ("timing", lambda: replace(CLOCKS, ccd_s_ps=0), "an int in 1"),
        ("scope", lambda: replace(REFRESH, scope="all"), "a RefreshScope"),  # type: ignore[arg-type]
        ("rate", lambda: SimpleSpec(8, 256, 0, 0), "bytes_per_us = 0"),
    ]


@pytest.mark.parametrize(
    ("make", "words"), [pytest.param(make, words, id=name) for name, make, words in refusals()]
)
def test_a_spec_that_makes_no_sense_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        make()


@every_engine
def test_wrong_calls_are_refused_and_leave_the_memory_as_it_was(kind: EngineKind) -> None:
    memory = BankedMemory(replace(slice_spec(CLOCKS), read_queue_bursts=8), kind)
    size = memory.capacity_bytes
    memory.accept(5, 0, False, 0, 2048)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.accept(5, 1, False, 0, 32), "no room for it"),
        (lambda: memory.accept(4, 1, False, 0, 32), "at least 5 ps"),
        (lambda: memory.advance(6), "decisions due at 5 ps made first"),
        (lambda: memory.accept(5, 1, False, size - 16, 32), "address = "),
        (lambda: memory.can_accept(5, False, 0, 4096), "16 bursts in one pseudo-channel"),
        (lambda: memory.can_accept(5, 1, 0, 32), "is_write = 1"),  # type: ignore[arg-type]
        (lambda: memory.accept(5, -1, True, 0, 32), "access_id = -1"),
    ]
    for call, words in wrong:
        with pytest.raises(EngineError, match=words):
            call()
    assert [row[0] for row in drive_out(memory)] == [0]


# --- the simple memory

SIMPLE = SimpleSpec(pseudo_channels=8, interleave_bytes=256, bytes_per_us=32_000, latency_ps=8_000)


@every_engine
def test_a_simple_memory_streams_at_its_rate_and_adds_its_latency(kind: EngineKind) -> None:
    load = [Request(0, n, False, 1024 * n, 1024) for n in range(64)]
    found = drive(SimpleMemory(SIMPLE, kind), load)
    # 64 KiB over 8 pseudo-channels of 32 GB/s
    assert max(served.done_ps for served in found.served.values()) == 256_000 + 8_000
    assert [counters.busy_ps for counters in found.counters] == [256_000] * 8


@needs_both_engines
@given(case=cases(), data=st.data(), rate=st.integers(1, 10**7), latency_ps=st.integers(0, 99))
def test_both_simple_memories_answer_every_call_alike(
    case: Case, data: st.DataObject, rate: int, latency_ps: int
) -> None:
    shape, _ = case
    load = data.draw(loads(shape))
    spec = SimpleSpec(shape.pseudo_channels, shape.interleave_bytes, rate, latency_ps)
    reference = Tapped(SimpleMemory(spec, EngineKind.REFERENCE))
    native = Tapped(SimpleMemory(spec, EngineKind.NATIVE))
    assert drive(reference, load) == drive(native, load)
    assert reference.answers == native.answers
    for counters in reference.counters():
        assert counters.busy_ps + counters.idle_ps == counters.window_ps
