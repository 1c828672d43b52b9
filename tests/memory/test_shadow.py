"""Bytes that were written, against a set of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.memory.shadow import ARENA_BYTES, Segments, Shadow

BORDER = ARENA_BYTES


@st.composite
def pieces(draw: st.DrawFn) -> Segments:
    """Near the border of two arenas."""
    num_bytes = draw(st.integers(1, 24))
    stride = draw(st.integers(num_bytes, 40))
    return Segments(
        BORDER + draw(st.integers(-200, 60)), draw(st.integers(1, 6)), num_bytes, stride
    )


def bytes_of(segments: Segments) -> list[int]:
    return [
        segments.address + place * segments.stride_bytes + offset
        for place in range(segments.num_segments)
        for offset in range(segments.num_bytes)
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
        size = forgotten.num_bytes * 5
        shadow.forget(forgotten.address, size)
        known.difference_update(range(forgotten.address, forgotten.address + size))
    for segments in written[:1]:
        shadow.mark_written(segments)
        known.update(bytes_of(segments))
    missing = [address for address in bytes_of(asked) if address not in known]
    expected = (missing[0], len(missing)) if missing else None
    assert shadow.first_unwritten(asked) == expected


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
