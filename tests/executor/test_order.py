"""What an access comes after, against all accesses before it."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.executor.order import PAGE_SHIFT, AccessOrder, Span, SpanOrder
from tilewright.memory.sanitizer.access import NOWHERE, Places

WINDOW = 8


@st.composite
def spans(draw: st.DrawFn) -> Span:
    size = draw(st.integers(1, 24))
    stride = draw(st.integers(size, 64))
    return Span(draw(st.integers(0, 300)), draw(st.integers(1, 6)), size, stride)


def bytes_of(span: Span) -> set[int]:
    return {
        span.address + row * span.stride_bytes + byte
        for row in range(span.num_segments)
        for byte in range(span.segment_bytes)
    }


@given(spans(), spans())
def test_accesses_that_share_a_byte_overlap(left: Span, right: Span) -> None:
    if bytes_of(left) & bytes_of(right):
        assert left.overlaps(right)
        assert right.overlaps(left)


@given(spans(), spans())
def test_at_equal_strides_nothing_else_overlaps(left: Span, right: Span) -> None:
    stride = max(left.stride_bytes, right.stride_bytes)
    one, other = left._replace(stride_bytes=stride), right._replace(stride_bytes=stride)
    if one.overlaps(other):
        ahead = (other.address - one.address) % stride
        shared = ahead < one.segment_bytes or stride - ahead < other.segment_bytes
        assert shared
        assert max(one.address, other.address) < min(one.end, other.end)


def test_neighbouring_columns_of_a_matrix_do_not_overlap() -> None:
    left = Span(0, 64, 128, 2048)
    assert not left.overlaps(Span(128, 64, 128, 2048))
    assert left.overlaps(Span(64, 64, 128, 2048))


def test_a_read_comes_after_writes_and_a_write_after_both() -> None:
    order = AccessOrder(WINDOW)
    here, there = Span(0, 1, 64, 64), Span(4096, 1, 64, 64)
    order.note_write([here], command=1, task=10)
    order.note_read([here], command=2, task=20)
    order.note_read([there], command=3, task=30)
    assert order.before_read([here], command=4) == [10]
    assert order.before_read([there], command=4) == []
    assert order.before_write([here], command=4) == [20, 10]
    assert order.before_write([there], command=4) == [30]


def test_what_a_window_ago_was_issued_has_ended() -> None:
    order = AccessOrder(WINDOW)
    order.note_write([Span(0, 1, 64, 64)], command=1, task=10)
    assert order.before_read([Span(0, 1, 64, 64)], command=WINDOW) == [10]
    assert order.before_read([Span(0, 1, 64, 64)], command=WINDOW + 1) == []


def test_an_access_over_several_pages_is_found_on_each() -> None:
    order = AccessOrder(WINDOW)
    order.note_write([Span(0, 4, 64, 65_536)], command=1, task=10)
    assert order.before_read([Span(3 * 65_536 + 32, 1, 8, 8)], command=2) == [10]


def test_a_write_that_releases_comes_after_all_that_may_be_under_way() -> None:
    order = AccessOrder(WINDOW)
    far = [Span(65_536 * 9, 1, 64, 64)]
    order.note_read([Span(0, 1, 64, 64)], command=1, task=10)
    order.note_write([Span(4096, 1, 64, 64)], command=2, task=20)
    order.release(True)
    assert order.before_write(far, command=3) == [10, 20]
    assert order.before_write(far, command=WINDOW + 1) == [20]
    order.note_write(far, command=3, task=30)
    assert order.before_write([Span(0, 1, 64, 64)], command=4) == [10]  # one write alone


def test_accesses_behind_one_that_acquires_come_after_it() -> None:
    order = AccessOrder(WINDOW)
    order.note_write([Span(0, 1, 4, 4)], command=1, task=10)
    order.acquire(command=1, task=10)
    far = [Span(65_536 * 9, 1, 64, 64)]
    assert order.before_read(far, command=2) == [10]
    assert order.before_write(far, command=WINDOW) == [10]
    assert order.before_write(far, command=WINDOW + 1) == []


BORDER = 1 << PAGE_SHIFT


@st.composite
def border_spans(draw: st.DrawFn) -> Span:
    """Few different ones, near the border of two pages."""
    size = draw(st.sampled_from([4, 8]))
    count = draw(st.sampled_from([1, 3]))
    return Span(BORDER + 8 * draw(st.integers(-4, 2)), count, size, 16)


accesses = st.lists(
    st.tuples(st.lists(border_spans(), min_size=1, max_size=2), st.booleans()), max_size=20
)


@given(accesses)
def test_an_access_comes_after_all_that_it_overlaps_and_all_before_them(
    program: list[tuple[list[Span], bool]],
) -> None:
    order = SpanOrder()
    closed: list[Places] = []
    for place, (mine, writes) in enumerate(program):
        expected = NOWHERE
        for other, (theirs, wrote) in enumerate(program[:place]):
            meets = any(one.overlaps(two) for one in mine for two in theirs)
            if meets and (writes or wrote):
                expected |= closed[other]
        assert order.before(mine, writes=writes).mask == expected.mask
        closed.append(expected | Places.one(place))
        order.note(mine, closed[-1], writes=writes)
