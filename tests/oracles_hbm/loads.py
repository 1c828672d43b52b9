"""Specs and loads for memories, and the driver that puts a load through one."""

from collections import deque
from operator import attrgetter
from typing import TypeVar

from hypothesis import assume
from hypothesis import strategies as st

from tests.oracles_hbm.burst_model import Outcome, Request, Served
from tilewright.engine.dram.memory import Completion, Memory
from tilewright.engine.dram.spec import (
    BankedRefreshSpec,
    BankedSpec,
    BankedTimingSpec,
    RefreshScope,
)
from tilewright.engine.statistics import ChannelCounters
from tilewright.limits import MapField

Answer = TypeVar("Answer")

GOOD_MAP: tuple[MapField, ...] = ("burst", "bank_group", "column", "bank", "stack_id", "row")
BAD_MAP: tuple[MapField, ...] = ("burst", "column", "bank_group", "bank", "stack_id", "row")

HBM4_CLOCKS = {
    "bl": 2, "cl": 20, "cwl": 10, "rcd_read": 39, "rcd_write": 19, "rp": 33, "ras": 57, "rc": 90,
    "ccd_s": 2, "ccd_l": 4, "ccd_r": 2, "rrd_s": 5, "rrd_l": 7, "faw": 30, "wtr_s": 9,
    "wtr_l": 13, "rtw": 25, "wr": 42, "rtp": 12,
}  # fmt: skip
HBM3_CLOCKS = {
    "bl": 2, "cl": 20, "cwl": 10, "rcd_read": 31, "rcd_write": 15, "rp": 26, "ras": 45, "rc": 72,
    "ccd_s": 2, "ccd_l": 4, "ccd_r": 3, "rrd_s": 4, "rrd_l": 5, "faw": 24, "wtr_s": 7,
    "wtr_l": 10, "rtw": 20, "wr": 33, "rtp": 9,
}  # fmt: skip


def timing_of(clocks: dict[str, int], clock_ps: int) -> BankedTimingSpec:
    return BankedTimingSpec(**{f"{name}_ps": value * clock_ps for name, value in clocks.items()})


def slice_spec(
    timing: BankedTimingSpec,
    refresh: BankedRefreshSpec | None = None,
    *,
    pseudo_channels: int = 8,
    address_map: tuple[MapField, ...] = GOOD_MAP,
) -> BankedSpec:
    """One slice of a stack as in the default machine."""
    return BankedSpec(
        pseudo_channels=pseudo_channels,
        stack_ids=2,
        bank_groups=2,
        banks=8,
        rows=2**14,
        row_bytes=1024,
        burst_bytes=32,
        interleave_bytes=256,
        address_map=address_map,
        read_queue_bursts=128,
        write_queue_bursts=128,
        drain_high_bursts=96,
        drain_low_bursts=32,
        timing=timing,
        refresh=refresh,
    )


class Tapped:
    """A memory whose answers are kept, in the order of the questions."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.answers: list[object] = []

    def keep(self, answer: Answer) -> Answer:
        self.answers.append(answer)
        return answer

    def can_accept(self, now_ps: int, is_write: bool, address: int, num_bytes: int) -> bool:
        return self.keep(self.memory.can_accept(now_ps, is_write, address, num_bytes))

    def room_ps(self, is_write: bool, address: int, num_bytes: int) -> int | None:
        return self.keep(self.memory.room_ps(is_write, address, num_bytes))

    def accept(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> None:
        self.memory.accept(now_ps, access_id, is_write, address, num_bytes)
        self.keep(self.memory.next_ps())

    def next_ps(self) -> int | None:
        return self.keep(self.memory.next_ps())

    def advance(self, now_ps: int) -> list[Completion]:
        completions = self.keep(self.memory.advance(now_ps))
        self.keep(self.counters())
        self.keep(self.openings())
        return completions

    def counters(self) -> tuple[ChannelCounters, ...]:
        return self.memory.counters()

    def openings(self) -> tuple[tuple[int, ...], ...]:
        return self.memory.openings()


def drive(memory: Memory | Tapped, load: list[Request]) -> Outcome:
    """Offer a load in order of arrival, then of the list; who finds no room waits at the door."""
    coming = deque(sorted(load, key=attrgetter("arrive_ps")))
    door = deque[Request]()
    accepted: dict[int, int] = {}
    served: dict[int, Served] = {}

    def take_in(now_ps: int) -> bool:
        before = len(accepted)
        while door and memory.can_accept(now_ps, *door[0][2:]):
            request = door.popleft()
            memory.accept(now_ps, *request[1:])
            accepted[request.access_id] = now_ps
        return len(accepted) > before

    def advance(now_ps: int) -> None:
        for access_id, done_ps, refresh_ps in memory.advance(now_ps):
            served[access_id] = Served(accepted[access_id], done_ps, refresh_ps)

    while True:
        times = [memory.next_ps(), coming[0].arrive_ps if coming else None]
        if door:
            times.append(memory.room_ps(*door[0][2:]))
        now_ps = min((time_ps for time_ps in times if time_ps is not None), default=None)
        if now_ps is None:
            return Outcome(served, memory.counters(), memory.openings())
        while coming and coming[0].arrive_ps == now_ps:
            door.append(coming.popleft())
        take_in(now_ps)
        advance(now_ps)
        while take_in(now_ps):
            advance(now_ps)


@st.composite
def timings(draw: st.DrawFn) -> BankedTimingSpec:
    """Any small distances, or those of HBM4 with a clock of one ps."""
    if draw(st.integers(0, 3)) == 0:
        return timing_of(HBM4_CLOCKS, 1)
    short, long = st.integers(0, 6), st.integers(0, 25)
    some = st.integers(1, 5)
    return BankedTimingSpec(
        bl_ps=draw(some),
        cl_ps=draw(long),
        cwl_ps=draw(long),
        rcd_read_ps=draw(long),
        rcd_write_ps=draw(long),
        rp_ps=draw(long),
        ras_ps=draw(long),
        rc_ps=draw(st.integers(0, 50)),
        ccd_s_ps=draw(some),
        ccd_l_ps=draw(some) + draw(short),
        ccd_r_ps=draw(some),
        rrd_s_ps=draw(short),
        rrd_l_ps=draw(short),
        faw_ps=draw(long),
        wtr_s_ps=draw(short),
        wtr_l_ps=draw(long),
        rtw_ps=draw(long),
        wr_ps=draw(long),
        rtp_ps=draw(st.integers(1, 6)),
    )


@st.composite
def refreshes(draw: st.DrawFn, timing: BankedTimingSpec) -> BankedRefreshSpec | None:
    kind = draw(st.sampled_from((None, *RefreshScope)))
    if kind is None:
        return None
    least_ps = 3 * max(timing.ras_ps, timing.rtp_ps, timing.write_end_ps + timing.wr_ps)
    least_ps += timing.rp_ps + timing.rc_ps + timing.faw_ps + timing.rcd_read_ps
    least_ps += timing.rcd_write_ps + timing.rrd_l_ps + timing.rrd_s_ps
    busy_ps = draw(st.integers(1, 60))
    interval_ps = least_ps + busy_ps + draw(st.integers(1, 150))
    return BankedRefreshSpec(kind, interval_ps, draw(st.integers(0, interval_ps)), busy_ps)


@st.composite
def specs(draw: st.DrawFn) -> BankedSpec:
    """Small memories: few banks and short queues, so that everything happens soon."""
    timing = draw(timings())
    burst_bytes = 4
    bursts_per_chunk = draw(st.sampled_from((1, 2, 4, 8)))
    columns = draw(st.sampled_from((4, 8)))
    write_queue = draw(st.integers(7, 40))
    high = draw(st.integers(1, write_queue))
    middle = draw(st.permutations(("bank_group", "column", "bank", "stack_id")))
    return BankedSpec(
        pseudo_channels=draw(st.integers(1, 3)),
        stack_ids=draw(st.integers(1, 2)),
        bank_groups=draw(st.sampled_from((1, 2, 2, 4))),
        banks=draw(st.sampled_from((1, 2, 4))) * (1 if columns == 8 else 2),
        rows=4,
        row_bytes=columns * burst_bytes,
        burst_bytes=burst_bytes,
        interleave_bytes=bursts_per_chunk * burst_bytes,
        address_map=draw(st.sampled_from((GOOD_MAP, ("burst", *middle, "row")))),
        read_queue_bursts=draw(st.integers(7, 40)),
        write_queue_bursts=write_queue,
        drain_high_bursts=high,
        drain_low_bursts=draw(st.integers(0, high - 1)),
        timing=timing,
        refresh=draw(refreshes(timing)),
    )


@st.composite
def loads(draw: st.DrawFn, spec: BankedSpec) -> list[Request]:
    """Streams and scattered accesses, at any distance, with ids in any order."""
    count = draw(st.integers(1, 30))
    ids = draw(st.permutations(range(count)))
    write_share = draw(st.sampled_from((0, 0, 3, 5, 10)))
    most_bytes = draw(st.sampled_from((4, 12, 24, 24)))
    pause = draw(st.sampled_from((0, 1, 5, 20, 200)))
    is_stream = draw(st.booleans())
    last = spec.capacity_bytes - most_bytes
    reach = draw(st.sampled_from((64, 256, last)))
    now_ps, address, load = 0, draw(st.integers(0, last)), []
    for access_id in ids:
        now_ps += draw(st.integers(0, pause))
        num_bytes = most_bytes
        if not is_stream:
            address = draw(st.integers(0, min(reach, last)))
            num_bytes = draw(st.integers(1, most_bytes))
        is_write = draw(st.integers(0, 9)) < write_share
        load.append(Request(now_ps, access_id, is_write, address, num_bytes))
        address = (address + num_bytes) % last
    return load


@st.composite
def cases(draw: st.DrawFn) -> tuple[BankedSpec, list[Request]]:
    spec = draw(specs())
    return spec, draw(loads(spec))


@st.composite
def tight_specs(draw: st.DrawFn) -> BankedSpec:
    """Few banks, rows that change fast, drains that end early."""
    short, some = st.integers(0, 6), st.integers(0, 14)
    clocks = HBM4_CLOCKS | {"rtp": draw(st.integers(1, 4)), "wr": draw(short), "cwl": draw(short)}
    clocks |= {"cl": draw(some), "rcd_read": draw(some), "rcd_write": draw(some)}
    clocks |= {
        "rp": draw(short),
        "ras": draw(st.integers(0, 40)),
        "rc": draw(some),
        "rtw": draw(short),
    }
    clocks |= {"rrd_s": draw(short), "rrd_l": draw(short), "faw": draw(some)}
    timing, high = timing_of(clocks, 1), draw(st.integers(4, 30))
    return BankedSpec(
        pseudo_channels=1,
        stack_ids=1,
        bank_groups=2,
        banks=2,
        rows=3,
        row_bytes=32,
        burst_bytes=4,
        interleave_bytes=32,
        address_map=draw(st.sampled_from((GOOD_MAP, BAD_MAP))),
        read_queue_bursts=48,
        write_queue_bursts=48,
        drain_high_bursts=high,
        drain_low_bursts=draw(st.integers(0, high - 1)),
        timing=timing,
        refresh=draw(refreshes(timing)),
    )


@st.composite
def tight_cases(draw: st.DrawFn) -> tuple[BankedSpec, list[Request]]:
    """Runs that something happens in."""
    count, share = draw(st.integers(4, 16)), draw(st.sampled_from((0, 2, 5, 8)))
    now_ps, load = 0, []
    for access_id in range(count):
        now_ps += draw(st.integers(0, 12)) if draw(st.booleans()) else 0
        chunk = (
            draw(st.integers(0, 3)) * 4 % 12 if draw(st.booleans()) else draw(st.integers(0, 11))
        )
        first, last = sorted((draw(st.integers(0, 7)), draw(st.integers(0, 7))))
        is_write = draw(st.integers(0, 9)) < share
        address, num_bytes = chunk * 32 + first * 4, (last - first + 1) * 4
        load.append(Request(now_ps, access_id, is_write, address, num_bytes))
    return draw(tight_specs()), load


@st.composite
def streak_cases(draw: st.DrawFn) -> tuple[BankedSpec, list[Request]]:
    """The same whole chunk over and over, until something else comes in between."""
    spec = draw(st.one_of(tight_specs(), specs()))
    size, burst = spec.interleave_bytes, spec.burst_bytes
    assume(min(spec.read_queue_bursts, spec.write_queue_bursts) * burst >= size)
    count, share = draw(st.integers(6, 20)), draw(st.sampled_from((0, 1, 10)))
    ids = list(range(count)) if draw(st.booleans()) else draw(st.permutations(range(count)))
    pause, chunk, now_ps, load = draw(st.sampled_from((0, 2, 16))), 0, 0, []
    for access_id in ids:
        now_ps += draw(st.integers(0, pause))
        start, num_bytes = chunk * size, size
        match draw(st.integers(0, 9)):
            case 0:
                num_bytes = draw(st.integers(1, size // burst)) * burst
            case 1:
                chunk = draw(st.integers(0, min(12, spec.capacity_bytes // size) - 1))
        is_write = draw(st.integers(0, 9)) < share
        load.append(Request(now_ps, access_id, is_write, start, num_bytes))
    return spec, load
