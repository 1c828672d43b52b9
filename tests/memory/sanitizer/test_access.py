from functools import reduce
from operator import or_

from hypothesis import given
from hypothesis import strategies as st

from tilewright.memory.sanitizer.access import NOWHERE, Places


@given(st.lists(st.sets(st.integers(0, 300), max_size=5), max_size=6))
def test_places_are_a_set(sets: list[set[int]]) -> None:
    made = [reduce(or_, map(Places.one, each), NOWHERE) for each in sets]
    whole = reduce(or_, made, NOWHERE)
    members: set[int] = set().union(*sets)
    assert list(whole.places()) == sorted(members)
    assert whole.mask == sum(1 << place for place in members)


@given(st.integers(0, 100))
def test_the_first_places_of_a_strand_are_all_of_them(count: int) -> None:
    assert list(Places.up_to(count).places()) == list(range(count))


def test_members_that_are_near_each_other_take_little_space() -> None:
    near = Places.one(10**6) | Places.one(10**6 + 3)
    assert near.bits.bit_length() == 4
