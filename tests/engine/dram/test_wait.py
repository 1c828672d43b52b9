"""What a native banked memory foretells: reads are served no sooner."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.oracles_hbm.burst_model import Request
from tests.oracles_hbm.loads import (
    HBM4_CLOCKS,
    Tapped,
    cases,
    drive,
    slice_spec,
    streak_cases,
    tight_cases,
    timing_of,
)
from tilewright.engine import EngineKind
from tilewright.engine.dram.memory import Completion, Memory
from tilewright.engine.dram.spec import BankedSpec
from tilewright.native import native_core

pytestmark = [needs_both_engines, pytest.mark.timeout(600)]

Case = tuple[BankedSpec, list[Request]]


class Foretold(NamedTuple):
    """That a read is served no sooner than a time, as it was at another."""

    now_ps: int
    access_id: int
    least_ps: int


class Asked(Tapped):
    """A native memory that is asked about all reads to come whenever it has decided something."""

    def __init__(self, spec: BankedSpec, load: list[Request]) -> None:
        self.core = native_core().BankedCore(spec)
        super().__init__(Memory(self.core, EngineKind.NATIVE, spec.capacity_bytes))
        self.reads = {each.access_id: each for each in load if not each.is_write}
        self.foretold: list[Foretold] = []

    def advance(self, now_ps: int) -> list[Completion]:
        completions = self.memory.advance(now_ps)
        for access_id, _, _ in completions:
            self.reads.pop(access_id, None)
        for access_id, read in self.reads.items():
            least_ps = self.core.least_read_ps(now_ps, access_id, read.address, read.num_bytes)
            self.foretold.append(Foretold(now_ps, access_id, least_ps))
        return completions


def short_cases() -> st.SearchStrategy[Case]:
    return st.one_of(cases(), tight_cases(), streak_cases())


@given(short_cases())
def test_no_read_is_served_sooner_than_foretold(case: Case) -> None:
    spec, load = case
    memory = Asked(spec, load)
    served = drive(memory, load).served
    assert [
        each for each in memory.foretold if served[each.access_id].done_ps < each.least_ps
    ] == []


def test_a_read_behind_others_whose_rows_are_open_is_foretold_exactly() -> None:
    spec = slice_spec(timing_of(HBM4_CLOCKS, 1), pseudo_channels=1)
    openers = [Request(0, number, False, 32 * number, 32) for number in range(2)]
    stream = [Request(100, number, False, 256 * number, 256) for number in range(2, 8)]
    memory = Asked(spec, openers + stream)
    last_ps = drive(memory, openers + stream).served[7].done_ps
    late = [each for each in memory.foretold if each.access_id == 7 and each.now_ps > 100]
    assert {each.least_ps for each in late} == {last_ps}
    assert min(each.now_ps for each in late) < last_ps - 80
