"""What an access comes after, against all accesses before it."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.executor.access.order import PAGE_SHIFT, Span
from tilewright.executor.sanitize.order import SpanOrder
from tilewright.memory.sanitizer.access import NOWHERE, Places

BORDER = 1 << PAGE_SHIFT


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """Few different ones, near the border of two pages."""
    size = draw(st.sampled_from([4, 8]))
    count = draw(st.sampled_from([1, 3]))
    return Span(BORDER + 8 * draw(st.integers(-4, 2)), count, size, 16)


accesses = st.lists(
    st.tuples(st.lists(spans(), min_size=1, max_size=2), st.booleans()), max_size=20
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
