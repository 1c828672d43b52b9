"""Predictions beside closed forms of rings on a switch: one PE a rank, blocks that are not cut."""

from fractions import Fraction
from functools import cache

import pytest

from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.choose import Chooser, LaneCall
from tilewright.collectives.critical import Prediction
from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.tuning import Tuning
from tilewright.device.ipcq import RingSpec
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.parse import parse_machine

RANKS = 5
KIB = 1024
BLOCK = 64 * KIB
WHOLE = 2**40  # no block is longer
LINK, PORT, SLICE = (Fraction(1000, rate) for rate in (128, 512, 256))  # ps a byte, of GB/s
VECTOR = Fraction(1000, 512 * 4)  # 512 lanes of f32 at 1 GHz


@cache
def chooser() -> Chooser:
    overrides = (f"sip.count={RANKS}", "fabric.kind=switch", "cube.hbm.refresh.kind=none")
    return Chooser(build_machine(parse_machine("ahbm-small", overrides)), ALGORITHMS)


def predicted(
    operation: Operation,
    *,
    block_bytes: int = BLOCK,
    chunk_bytes: int = WHOLE,
    slot_bytes: int = 4096,
    round_bytes: int = 2**20,
) -> Prediction:
    group = Group("pes", tuple((PeCoord(sip, 0, 0),) for sip in range(RANKS)), tuple(range(RANKS)))
    tuning = Tuning(RingSpec(slots=8, slot_bytes=slot_bytes), chunk_bytes, round_bytes)
    on = LaneCall(Call(operation, RANKS), group, (0,), RANKS * block_bytes, 4)
    return chooser().predict(ALGORITHMS["ring"], on, tuning)


def test_bytes_go_over_the_link_once_a_turn_and_each_fragment_is_answered_by_a_flit() -> None:
    sent = BLOCK + BLOCK // 4096 * 64
    for operation, turns in ((Operation.ALL_GATHER, 4), (Operation.ALL_REDUCE, 8)):
        assert predicted(operation).beta_ps == turns * sent * LINK


def test_what_is_taken_comes_from_memory_once_and_goes_there_once() -> None:
    assert predicted(Operation.ALL_GATHER).gamma_ps == 2 * BLOCK * SLICE


def test_a_sum_takes_both_operands_the_unit_and_the_way_back_to_the_tcm() -> None:
    a_sum = BLOCK * (3 * PORT + VECTOR)
    assert predicted(Operation.REDUCE_SCATTER).gamma_ps == 2 * BLOCK * SLICE + 4 * a_sum


def test_the_last_fragment_goes_through_both_ports_of_a_tcm() -> None:
    small, large = (
        predicted(Operation.ALL_GATHER, slot_bytes=size).alpha_ps for size in (4096, 8192)
    )
    assert large - small == 4 * 4096 * 2 * PORT


def test_chunks_after_the_first_follow_as_fast_as_the_busiest_link() -> None:
    """One chunk takes the longest way; all others of the four turns come behind it."""
    cut = predicted(Operation.ALL_GATHER, chunk_bytes=BLOCK // 4)
    first = predicted(Operation.ALL_GATHER, block_bytes=BLOCK // 4)
    sent = 4 * (BLOCK + BLOCK // 4096 * 64) * LINK
    assert cut.beta_ps == first.beta_ps + sent * 3 / 4
    assert (cut.alpha_ps, cut.gamma_ps) == (first.alpha_ps, first.gamma_ps)


def test_rounds_run_one_after_the_other() -> None:
    whole = predicted(Operation.ALL_REDUCE, round_bytes=RANKS * BLOCK // 2)
    half = predicted(Operation.ALL_REDUCE, block_bytes=BLOCK // 2)
    assert (whole.alpha_ps, whole.beta_ps, whole.gamma_ps) == (
        2 * half.alpha_ps, 2 * half.beta_ps, 2 * half.gamma_ps,
    )  # fmt: skip


def test_a_link_that_two_blocks_of_a_turn_share_takes_them_one_after_the_other() -> None:
    """A broadcast from rank 0 to four others, all from one PE: whatever the order of turns."""
    group = Group("pes", tuple((PeCoord(sip, 0, 0),) for sip in range(RANKS)), tuple(range(RANKS)))
    call = Call(Operation.BROADCAST, RANKS)
    tuning = Tuning(RingSpec(slots=8), WHOLE)
    on = LaneCall(call, group, (0,), RANKS * BLOCK, 4)
    found = chooser().predict(ALGORITHMS["direct"], on, tuning)
    assert found.beta_ps == pytest.approx(float((RANKS - 1) * RANKS * BLOCK * LINK), rel=0.01)
