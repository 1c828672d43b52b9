"""Bytes that were written, against a set of them."""

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.memory.address import Segments
from tilewright.memory.sanitizer import shadow as shadow_module
from tilewright.memory.sanitizer.shadow import ARENA_BYTES, Shadow

BORDER = ARENA_BYTES


@st.composite
def pieces(draw: st.DrawFn) -> Segments:
    """Near the border of two arenas."""
    num_bytes = draw(st.integers(1, 24))
    stride = draw(st.integers(num_bytes, 40))
    return Segments(
        BORDER + draw(st.integers(-200, 60)), draw(st.integers(1, 6)), num_bytes, stride
    )


@st.composite
def long_pieces(draw: st.DrawFn) -> Segments:
    """One segment over whole arenas, so small that each of their bytes can be asked for."""
    address = draw(st.integers(0, 80))
    num_bytes = draw(st.integers(1, 120))
    return Segments(address, 1, num_bytes, num_bytes)


def bytes_of(segments: Segments) -> list[int]:
    return [
        segments.address + place * segments.stride_bytes + offset
        for place in range(segments.num_segments)
        for offset in range(segments.segment_bytes)
    ]


@settings(max_examples=200, deadline=None)
@given(written=st.lists(pieces(), max_size=6), asked=pieces(), forgotten=st.none() | pieces())
def test_the_unwritten_bytes_are_those_that_nobody_wrote_since_they_were_forgotten(
    written: list[Segments], asked: Segments, forgotten: Segments | None
) -> None:
    shadow = Shadow()
    known: set[int] = set()
    for segments in written[1:]:
        shadow.mark_written(segments)
        known.update(bytes_of(segments))
    if forgotten is not None:
        size = forgotten.segment_bytes * 5
        shadow.forget(forgotten.address, size)
        known.difference_update(range(forgotten.address, forgotten.address + size))
    for segments in written[:1]:
        shadow.mark_written(segments)
        known.update(bytes_of(segments))
    missing = [address for address in bytes_of(asked) if address not in known]
    expected = (missing[0], len(missing)) if missing else None
    assert shadow.first_unwritten(asked) == expected


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(("mark", "forget", "ask")), long_pieces())))
def test_whole_arenas_are_known_as_their_bytes_are(steps: list[tuple[str, Segments]]) -> None:
    with (
        mock.patch.object(shadow_module, "ARENA_SHIFT", 4),
        mock.patch.object(shadow_module, "ARENA_BYTES", 16),
    ):
        shadow, known = Shadow(), set[int]()
        for step, segments in steps:
            if step == "mark":
                shadow.mark_written(segments)
                known.update(bytes_of(segments))
            elif step == "forget":
                shadow.forget(segments.address, segments.segment_bytes)
                known.difference_update(bytes_of(segments))
            missing = [address for address in bytes_of(segments) if address not in known]
            expected = (missing[0], len(missing)) if missing else None
            assert shadow.first_unwritten(segments) == expected
        everything = Segments(0, 1, 200, 200)
        missing = [address for address in range(200) if address not in known]
        assert shadow.first_unwritten(everything) == (missing[0], len(missing))


def test_a_terabyte_that_was_written_takes_no_space() -> None:
    shadow = Shadow()
    shadow.mark_written(Segments(5, 1, 2**40, 2**40))
    assert shadow.first_unwritten(Segments(5, 1, 2**36, 2**36)) is None
    assert shadow.first_unwritten(Segments(2**40, 1, 10, 10)) == (2**40 + 5, 5)
    shadow.forget(2**39, 2**38)
    assert shadow.first_unwritten(Segments(2**39 - 4, 1, 8, 8)) == (2**39, 4)


@given(pieces())
def test_windows_hold_every_byte_once_in_order_and_stay_in_one_arena(segments: Segments) -> None:
    found = []
    for window in Shadow().windows(segments):
        rows, columns = window.shape
        found += [window.address_of(place) for place in range(rows * columns)]
        assert 0 <= window.inside < ARENA_BYTES
        assert window.inside + (rows - 1) * window.stride_bytes + columns <= ARENA_BYTES
    assert found == bytes_of(segments)


def test_an_access_of_one_row_repeated_is_one_row() -> None:
    (window,) = Shadow().windows(Segments(64, 5, 8, 0))
    assert window.shape == (5, 8)
