"""Channels of a native banked memory that go together, until an access parts them."""

from dataclasses import replace
from importlib import import_module
from typing import cast

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
from tilewright.engine.banked import BankedMemory, BankedRefreshSpec, BankedSpec, RefreshScope
from tilewright.engine.banked_core import MemoryCore
from tilewright.engine.banked_layout import bank_table, banked_numbers

pytestmark = [needs_both_engines, pytest.mark.timeout(600)]
assert settings.default is not None
many = settings(max_examples=2 * settings.default.max_examples)

Case = tuple[BankedSpec, list[Request]]


@st.composite
def gang_cases(draw: st.DrawFn) -> Case:
    """The same chunk of every channel again and again, now and then of some channels only."""
    spec = draw(st.one_of(tight_specs(), specs()))
    spec = replace(spec, pseudo_channels=draw(st.integers(2, 5)))
    size = spec.interleave_bytes
    assume(min(spec.read_queue_bursts, spec.write_queue_bursts) * spec.burst_bytes >= size)
    share, parting = draw(st.sampled_from((0, 2, 10))), draw(st.sampled_from((1, 4)))
    pause, count = draw(st.sampled_from((0, 4, 40))), draw(st.integers(4, 14))
    reach, now_ps, load = draw(st.sampled_from((1, 3, 12))), 0, []
    for access_id in draw(st.permutations(range(count))):
        now_ps += draw(st.integers(0, pause))
        row = draw(st.integers(0, reach - 1)) * size * spec.pseudo_channels
        first, end = 0, size * spec.pseudo_channels
        if draw(st.integers(0, 9)) < parting:
            first, end = sorted(draw(st.tuples(st.integers(0, end - 1), st.integers(1, end))))
        row = row % (spec.capacity_bytes - end + 1)
        is_write = draw(st.integers(0, 9)) < share
        load.append(Request(now_ps, access_id, is_write, row + first, max(1, end - first)))
    return spec, load


@many
@given(gang_cases())
def test_both_cores_serve_channels_that_part_alike(case: Case) -> None:
    spec, load = case
    reference = Tapped(BankedMemory(spec, EngineKind.REFERENCE))
    native = Tapped(BankedMemory(spec, EngineKind.NATIVE))
    assert drive(reference, load) == drive(native, load)
    assert reference.answers == native.answers


def test_channels_that_part_keep_their_places_in_the_accesses_they_share() -> None:
    """Refresh held an access up by as much as in its first channel, whichever decides first."""
    refresh = BankedRefreshSpec(RefreshScope.ALL_BANKS, interval_ps=5000, first_ps=100, busy_ps=100)
    timing = replace(timing_of(HBM4_CLOCKS, 1), ras_ps=100, rc_ps=400)
    spec = slice_spec(timing, refresh, pseudo_channels=2)
    shared = Request(50, 1, False, 64 * 1024, 512)  # the next row of the same banks
    late_hit = Request(97, 2, False, 256 + 32, 32)  # lengthens the refresh of the second channel
    load = [Request(0, 0, False, 0, 512), shared, late_hit]
    native = import_module("tilewright.engine._core")
    core = cast(MemoryCore, native.BankedCore(banked_numbers(spec), bank_table(spec)))
    for request in load:
        assert core.can_accept(request.arrive_ps, *request[2:])
        core.accept(request.arrive_ps, *request[1:])
    assert core.can_accept(1000, False, 256, 32)  # makes the decisions of the second channel
    expected = drive(BankedMemory(spec, EngineKind.REFERENCE), load).served[1]
    assert (1, expected.done_ps, expected.refresh_ps) in core.advance(1000)
    assert expected.refresh_ps == (105 - 100) + 33 + 100
