"""Races that are found, against all races that there are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.sanitizer_oracle import NUM_BYTES, Do, Oracle, Watched, clipped, scripts
from tilewright.memory.address import Segments
from tilewright.memory.sanitizer.access import AccessKind

PLAIN = (AccessKind.LOAD, AccessKind.STORE)


@settings(max_examples=100, deadline=None)
@given(scripts())
def test_what_is_told_as_a_race_is_one(script: list[Do]) -> None:
    assert Watched(script).races <= set(Oracle(script).races)


@settings(max_examples=100, deadline=None)
@given(scripts(PLAIN), st.integers(0, NUM_BYTES - 1))
def test_a_byte_on_which_accesses_race_is_told(script: list[Do], byte: int) -> None:
    here = clipped(script, byte)
    assert bool(Watched(here).races) == bool(Oracle(here).races)


WORD = Segments(0, 1, 4, 4)
FLAG = Segments(8, 1, 4, 4)


def begin(strand: int, number: int, kind: AccessKind, segments: Segments, *after: int) -> Do:
    return Do("begin", strand, number, after, kind, segments)


def end(strand: int, number: int) -> Do:
    return Do("end", strand, number)


def test_a_message_orders_only_what_it_comes_after() -> None:
    for after, expected in (((), {((0, 0), (1, 0))}), ((0,), set())):
        script = [
            begin(0, 0, AccessKind.STORE, WORD),
            Do("send", 0, 1, after),
            end(0, 0),
            Do("receive", 1, 0),
            begin(1, 0, AccessKind.LOAD, WORD),
            end(1, 0),
        ]
        assert Watched(script).races == set(Oracle(script).races) == expected


def test_an_atomic_hands_on_what_was_complete_before_it() -> None:
    for after, expected in (((), {((0, 0), (1, 1))}), ((0,), set())):
        script = [
            begin(0, 0, AccessKind.STORE, WORD),
            end(0, 0),
            begin(0, 1, AccessKind.ATOMIC, FLAG, *after),
            end(0, 1),
            begin(1, 0, AccessKind.ATOMIC, FLAG),
            end(1, 0),
            begin(1, 1, AccessKind.LOAD, WORD, 0),
            end(1, 1),
        ]
        assert Watched(script).races == set(Oracle(script).races) == expected


def test_knowledge_goes_through_a_third_strand() -> None:
    script = [
        begin(0, 0, AccessKind.STORE, WORD),
        end(0, 0),
        Do("send", 0, 1, (0,)),
        Do("receive", 1, 0),
        Do("send", 1, 2),
        Do("receive", 2, 1),
        begin(2, 0, AccessKind.STORE, WORD),
        end(2, 0),
    ]
    assert not Watched(script).races
    assert Watched(script[:4] + script[6:]).races == {((0, 0), (2, 0))}


def test_of_many_readers_each_one_counts() -> None:
    script = []
    for strand in range(3):
        script += [begin(strand, 0, AccessKind.LOAD, WORD), end(strand, 0)]
    script += [Do("send", 0, 3, (0,)), Do("send", 2, 3, (0,))]
    script += [Do("receive", 3, 0), Do("receive", 3, 2)]
    script += [begin(3, 0, AccessKind.STORE, WORD), end(3, 0)]
    assert Watched(script).races == {((1, 0), (3, 0))}
