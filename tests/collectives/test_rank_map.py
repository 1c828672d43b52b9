from typing import Any

import pytest

from tests.collectives.worlds import machine_of_sips
from tilewright.collectives.rank_map import places_of_ranks
from tilewright.errors import CollectiveError
from tilewright.machine.coords import PeCoord

GRID = machine_of_sips(2).grid
FIRST, SECOND = PeCoord(0, 0, 0), PeCoord(1, 0, 3)


@pytest.mark.parametrize(
    "said",
    [
        [FIRST, SECOND],
        ([0, 0, 0], (1, 0, 3)),
        {1: (1, 0, 3), 0: [FIRST]},
        [[(0, 0, 0)], [[1, 0, 3]]],
    ],
)
def test_a_map_says_a_pe_or_pes_for_each_rank(said: Any) -> None:
    assert places_of_ranks(GRID, 2, said) == ((FIRST,), (SECOND,))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([(0, 0), (0, 1)], r"\(0, 0\) for rank 0, expected a PE as \(sip, cube, pe\)"),
        ([(0, 0, 0), 1], "1 for rank 1"),
        ([(0, 0, 0), "first"], "'first' for rank 1"),
        ([(0, 0, 0), []], r"\[\] for rank 1"),
        ([(0, 0, 0), (0, 0, 0.5)], "0.5"),
        ({0: (0, 0, 0), 2: (0, 0, 1)}, "the ranks 0, 2, expected those from 0 to 1"),
        ([(0, 0, 0), (0, 9, 0)], "a PE of the machine"),
        ([], "PEs of 0 ranks for 2"),
        (2, "an object of int, expected a list of PEs"),
    ],
)
def test_what_is_no_map_is_refused(said: Any, words: str) -> None:
    with pytest.raises(CollectiveError, match=words):
        places_of_ranks(GRID, 2, said)


@pytest.mark.parametrize("size", ["two", 2.0, True, 3, 0])
def test_a_world_without_a_map_has_as_many_ranks_as_some_sips(size: Any) -> None:
    with pytest.raises(CollectiveError, match="expected 1 to 2, the SIPs of the machine"):
        places_of_ranks(GRID, size, None)
