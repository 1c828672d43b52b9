"""Channels of a native banked memory that go together, until an access parts them."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.oracles_hbm.burst_model import Request
from tests.oracles_hbm.loads import (
    HBM4_CLOCKS,
    Tapped,
    drive,
    slice_spec,
    specs,
    tight_specs,
    timing_of,
)
from tilewright.engine import EngineKind
from tilewright.engine.dram.memory import BankedMemory, Completion, MemoryCore
from tilewright.engine.dram.spec import (
    BankedRefreshSpec,
    BankedSpec,
    RefreshScope,
)
from tilewright.native import native_core

pytestmark = [needs_both_engines, pytest.mark.timeout(600)]
assert settings.default is not None
many = settings(max_examples=2 * settings.default.max_examples)

Case = tuple[BankedSpec, list[Request]]


class Alone(Tapped):
    """A memory beside others of one channel each, which get what its channels get."""

    def __init__(self, spec: BankedSpec) -> None:
        super().__init__(BankedMemory(spec, EngineKind.NATIVE))
        self.spec = spec
        one = replace(spec, pseudo_channels=1)
        self.channels = [BankedMemory(one, EngineKind.NATIVE) for _ in range(spec.pseudo_channels)]
        self.waiting: dict[int, set[int]] = {}  # channels of an access
        self.last: dict[int, tuple[int, int, int]] = {}  # of an access: done, channel, refresh

    def accept(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> None:
        """An access of no more than one chunk of every channel."""
        super().accept(now_ps, access_id, is_write, address, num_bytes)
        size, num_channels = self.spec.interleave_bytes, self.spec.pseudo_channels
        self.waiting[access_id] = set()
        end = address + num_bytes
        while address < end:
            local, channel = divmod(address // size, num_channels)
            stop = min(end, (address // size + 1) * size)
            start = local * size + address % size
            self.channels[channel].accept(now_ps, access_id, is_write, start, stop - address)
            self.waiting[access_id].add(channel)
            address = stop

    def advance(self, now_ps: int) -> list[Completion]:
        expected: list[Completion] = []
        for number, channel in enumerate(self.channels):
            for access_id, done_ps, refresh_ps in channel.advance(now_ps):
                last = self.last.get(access_id, (-1, 0, 0))
                self.last[access_id] = max(last, (done_ps, -number, refresh_ps))
                self.waiting[access_id].remove(number)
                if not self.waiting[access_id]:
                    done_ps, _, refresh_ps = self.last[access_id]
                    expected.append((access_id, done_ps, refresh_ps))
        completions = self.memory.advance(now_ps)
        assert completions == sorted(expected, key=lambda each: (each[1], each[0]))
        assert self.memory.counters() == tuple(each.counters()[0] for each in self.channels)
        return completions


@st.composite
def gang_cases(draw: st.DrawFn) -> Case:
    """The same chunk of all channels for a while, then of some of them; again and again."""
    spec = draw(st.one_of(tight_specs(), specs()))
    spec = replace(spec, pseudo_channels=draw(st.integers(2, 5)))
    size, across = spec.interleave_bytes, spec.interleave_bytes * spec.pseudo_channels
    assume(min(spec.read_queue_bursts, spec.write_queue_bursts) * spec.burst_bytes >= size)
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    share, parting = draw(st.sampled_from((0, 1, 5, 10))), draw(st.sampled_from((8, 20)))
    pause, reach = draw(st.sampled_from((2, 5, 20, 200))), draw(st.sampled_from((1, 4, 64)))
    places = spec.capacity_bytes // across
    now_ps, load = 0, []
    for access_id in range(draw(st.integers(60, 160))):
        now_ps += int(chance.integers(0, pause, endpoint=True))
        first, end, place = 0, across, int(chance.integers(min(places, reach)))
        if chance.integers(parting) == 0:
            place = int(chance.integers(places))
            first = int(chance.integers(spec.pseudo_channels)) * size
            end = first + int(chance.integers(1, size, endpoint=True))
        is_write = bool(chance.integers(10) < share)
        load.append(Request(now_ps, access_id, is_write, place * across + first, end - first))
    return spec, load


@many
@given(gang_cases())
def test_every_channel_is_served_as_if_it_were_alone(case: Case) -> None:
    spec, load = case
    drive(Alone(spec), load)


def test_channels_that_part_keep_their_places_in_the_accesses_they_share() -> None:
    """Refresh held an access up by as much as in its first channel, whichever decides first."""
    refresh = BankedRefreshSpec(RefreshScope.ALL_BANKS, interval_ps=5000, first_ps=100, busy_ps=100)
    timing = replace(timing_of(HBM4_CLOCKS, 1), ras_ps=100, rc_ps=400)
    spec = slice_spec(timing, refresh, pseudo_channels=2)
    shared = Request(50, 1, False, 64 * 1024, 512)  # the next row of the same banks
    late_hit = Request(97, 2, False, 256 + 32, 32)  # lengthens the refresh of the second channel
    load = [Request(0, 0, False, 0, 512), shared, late_hit]
    core = cast("MemoryCore", native_core().BankedCore(spec))
    for request in load:
        assert core.can_accept(request.arrive_ps, *request[2:])
        core.accept(request.arrive_ps, *request[1:])
    assert core.can_accept(1000, False, 256, 32)  # makes the decisions of the second channel
    expected = drive(BankedMemory(spec, EngineKind.REFERENCE), load).served[1]
    assert (1, expected.done_ps, expected.refresh_ps) in core.advance(1000)
    assert expected.refresh_ps == (105 - 100) + 33 + 100
