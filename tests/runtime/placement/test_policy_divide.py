"""Blocks dealt as patterns, against blocks dealt one by one."""

from collections.abc import Sequence
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from tilewright.memory.runs import Runs, num_bytes_of
from tilewright.runtime.placement import policy
from tilewright.runtime.placement.policy import deal_blocks


def explicit(runs: Sequence[range], block_bytes: int, num_units: int) -> list[list[range]]:
    """Byte by byte: byte i of all runs goes to the unit of its block."""
    hands: list[list[range]] = [[] for _ in range(num_units)]
    for place, byte in enumerate(byte for run in runs for byte in run):
        hand = hands[place // block_bytes % num_units]
        start = hand.pop().start if hand and hand[-1].stop == byte else byte
        hand.append(range(start, byte + 1))
    return hands


@given(
    start=st.integers(0, 50),
    size=st.integers(0, 700),
    levels=st.lists(st.tuples(st.integers(1, 24), st.integers(1, 4)), min_size=1, max_size=3),
)
def test_levels_of_blocks_are_dealt_as_byte_by_byte(
    start: int, size: int, levels: list[tuple[int, int]]
) -> None:
    found: list[Sequence[range]] = [(range(start, start + size),) if size else ()]
    expected: list[Sequence[range]] = list(found)
    with mock.patch.object(policy, "MAX_EXPLICIT", 0):
        for block_bytes, num_units in levels:
            found = [each for runs in found for each in deal_blocks(runs, block_bytes, num_units)]
            expected = [
                each for runs in expected for each in explicit(runs, block_bytes, num_units)
            ]
    assert [list(runs) for runs in found] == [list(runs) for runs in expected]
    assert sum(map(num_bytes_of, found)) == size


def test_a_terabyte_page_by_page_is_one_pattern_for_each_unit() -> None:
    page = 2**16
    whole: list[Sequence[range]] = [(range(3 * page, 2**40 + 3 * page + 5),)]
    for num_units in (2, 16, 8):
        whole = [each for runs in whole for each in deal_blocks(runs, page, num_units)]
    assert len(whole) == 256
    for unit, runs in enumerate(whole):
        assert isinstance(runs, Runs)
        assert sum(len(repeat.pattern) for repeat in runs.repeats) <= 2
        assert len(runs) == 2**40 // page // 256 + (unit == 0)
    assert sum(map(num_bytes_of, whole)) == 2**40 + 5
    assert whole[1][2] == range((2 * 256 + 16 * 2 + 3) * page, (2 * 256 + 16 * 2 + 4) * page)
