"""Ranges that repeat, against all of them one by one."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.memory.runs import Extent, RunIndex

Entry = tuple[Extent, str]


@st.composite
def entries(draw: st.DrawFn) -> list[Entry]:
    """Patterns one behind the other, some with gaps and copies; some that do not fit together."""
    found: list[Entry] = []
    at = draw(st.integers(0, 5))
    for pattern in range(draw(st.integers(0, 3))):
        times = draw(st.integers(1, 4))
        sizes = draw(
            st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=3)
        )
        step = sum(map(sum, sizes)) + draw(st.integers(0, 3))
        start = at
        for place, (gap, size) in enumerate(sizes):
            start += gap
            own = draw(st.sampled_from((times, times, times, 1)))
            extent = Extent(start, size, own, step if own > 1 else 0)
            for copy in range(draw(st.sampled_from((1, 1, 2)))):
                found.append((extent, f"{pattern}.{place}.{copy}"))
            start += size
        at += times * step
    return draw(st.permutations(found))


def owners(some: list[Entry]) -> dict[int, tuple[int, int, set[str]]]:
    """By byte: the range that has it, and whose it is."""
    found: dict[int, tuple[int, int, set[str]]] = {}
    for extent, item in some:
        for single in extent.single():
            for byte in range(single.first, single.end):
                found.setdefault(byte, (single.first, single.end, set()))[2].add(item)
    return found


@given(some=entries(), low=st.integers(0, 60), size=st.integers(0, 60))
def test_an_index_of_patterns_finds_what_is_there(some: list[Entry], low: int, size: int) -> None:
    index, expected = RunIndex(some), owners(some)
    assert index.overlap() is None
    for byte in range(90):
        hit = index.at(byte)
        assert (byte in expected) == (hit is not None)
        if hit is not None:
            assert (hit.low, hit.high, set(hit.items)) == expected[byte]
            extents = {item: extent for extent, item in some}
            for item, repetition in hit.owners:
                assert extents[item].first + repetition * extents[item].step == hit.low
        starts = sorted({start for start, _, _ in expected.values() if start > byte})
        assert index.next_start(byte) == (starts[0] if starts else None)
    span = range(low, low + size)
    seen = [byte for hit in index.hits(span) for byte in range(hit.low, hit.high) if byte in span]
    assert seen == [byte for byte in span if byte in expected]
    missing = [byte for part in index.missing(span) for byte in part]
    assert missing == [byte for byte in span if byte not in expected]


@given(some=entries(), start=st.integers(0, 40), size=st.integers(1, 6))
def test_ranges_that_overlap_are_told(some: list[Entry], start: int, size: int) -> None:
    extent = Extent(start, size)
    expected = owners(some)
    ranges = {expected[byte][:2] for byte in range(extent.first, extent.end) if byte in expected}
    found = RunIndex([*some, (extent, "new")]).overlap()
    assert (found is None) == (ranges <= {(extent.first, extent.end)})
