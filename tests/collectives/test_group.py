from typing import Any

import pytest

from tests.collectives.worlds import machine_of_sips
from tilewright.collectives.group import Group, Signature, places_of_ranks, sip_ranks
from tilewright.collectives.operation import Call, Operation
from tilewright.errors import CollectiveError
from tilewright.machine.coords import PeCoord

PLACES = tuple((PeCoord(0, 0, pe),) for pe in range(3))


def signature(rank: int, part_sizes: dict[int, int], call: Call | None = None) -> Signature:
    made = call or Call(Operation.ALL_TO_ALL, 3)
    return Signature(made, "fp32", "sum", part_sizes, rank)


def test_a_rank_is_all_pes_of_a_sip() -> None:
    ranks = sip_ranks(machine_of_sips(3).grid, 2)
    assert [{pe.sip for pe in pes} for pes in ranks] == [{0}, {1}]
    assert [len(pes) for pes in ranks] == [4, 4]
    with pytest.raises(CollectiveError, match="4 ranks, expected 1 to 3"):
        sip_ranks(machine_of_sips(3).grid, 4)


def test_a_pe_belongs_to_one_rank_and_ranks_are_of_one_size() -> None:
    with pytest.raises(CollectiveError, match=r"sip0\.cube0\.pe0 in ranks 0 and 1"):
        Group("twice", (PLACES[0], PLACES[0]), (0, 1))
    with pytest.raises(CollectiveError, match="1 PEs of rank 1 and 2 of rank 0"):
        Group("uneven", (PLACES[0] + PLACES[1], PLACES[2]), (0, 1))


def test_the_first_to_come_decides_and_the_last_closes_a_call() -> None:
    group = Group("some", PLACES, (4, 5, 6))
    asked: list[str] = []

    def call(rank: int, offer: str) -> object:
        def decide() -> str:
            asked.append(offer)
            return offer

        return group.begin_call(rank, signature(rank, {0: 8}), decide)

    assert [call(1, "a"), call(0, "b")] == [(0, "a"), (0, "a")]
    assert call(1, "c") == (1, "c")  # a call ahead of the others
    assert [call(2, "d"), call(2, "e")] == [(0, "a"), (1, "c")]
    assert asked == ["a", "c"]


def test_only_parts_that_both_ranks_have_must_be_of_one_size() -> None:
    group = Group("some", PLACES, (0, 1, 2))
    group.begin_call(0, signature(0, {0: 1, 1: 2}), object)
    group.begin_call(1, signature(1, {1: 2, 2: 9}), object)
    with pytest.raises(CollectiveError, match=r"by rank 2, expected .* as rank 1 calls it"):
        group.begin_call(2, signature(2, {2: 8}), object)


def test_a_rank_of_the_world_has_a_number_in_its_groups() -> None:
    group = Group("some", PLACES, (4, 6, 5))
    assert [group.rank_of(world_rank) for world_rank in (4, 5, 6)] == [0, 2, 1]
    with pytest.raises(CollectiveError, match="found rank 1, expected one of the ranks 4, 6, 5"):
        group.rank_of(1)


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
