"""The plot of a probe: what is on it, where it is, and that nothing else decides its bytes."""

import re
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.drawn import Shape, lines, size, texts, tipped, tips
from tests.report.probe_records import record_of, row_of
from tilewright.records import ProbeRow
from tilewright.report.probe_plot import LEGEND_AT, draw_probe
from tilewright.report.style import COLOURS, series_role


def drawn(text: str, index: int, *, dashed: bool) -> list[Shape]:
    """The lines of a case, panel by panel, without the marks on them and the legend."""
    return [
        line
        for line in lines(text, COLOURS[series_role(index)])
        if len(line.points) > 1 and ("stroke-dasharray" in line.style) is dashed
        if line.points[0][0] < LEGEND_AT
    ]


def test_each_case_has_a_solid_and_a_dashed_line_in_both_panels() -> None:
    rows = [row_of(case, size, 4 * size, 2 * size) for case in "ab" for size in (256, 4096)]
    text = draw_probe(record_of(*rows))
    for index in range(2):
        assert [len(line.points) for line in drawn(text, index, dashed=False)] == [2, 2]
        assert [len(line.points) for line in drawn(text, index, dashed=True)] == [2, 2]
    assert drawn(text, 2, dashed=False) == []


def test_both_axes_are_logarithmic() -> None:
    sizes = (256, 1024, 65536)
    text = draw_probe(record_of(*(row_of("a", size, 10 * size, 5 * size) for size in sizes)))
    _, latency = drawn(text, 0, dashed=False)
    (left, top), (middle_x, middle_y), (right, bottom) = latency.points
    share = log(1024 / 256) / log(65536 / 256)
    assert (middle_x - left) / (right - left) == pytest.approx(share, abs=1e-3)
    assert (middle_y - top) / (bottom - top) == pytest.approx(share, abs=1e-3)


def test_a_bound_below_the_latency_is_drawn_below_it_and_above_the_bandwidth() -> None:
    text = draw_probe(record_of(row_of("a", 256, 4_000, 1_000), row_of("a", 512, 8_000, 2_000)))
    found, bounds = drawn(text, 0, dashed=False), drawn(text, 0, dashed=True)
    for (_, rate), (_, most) in zip(found[0].points, bounds[0].points, strict=True):
        assert most < rate  # y grows downwards
    for (_, time), (_, least) in zip(found[1].points, bounds[1].points, strict=True):
        assert least > time


def test_lines_that_coincide_can_be_told_apart() -> None:
    """Each is wider than those that are drawn over it, and has a mark of its own."""
    rows = [row_of(case, size, 4 * size, 2 * size) for case in "abc" for size in (256, 4096)]
    text = draw_probe(record_of(*rows))
    alike = [drawn(text, index, dashed=False)[0] for index in range(3)]
    assert len({line.points for line in alike}) == 1
    widths = [float(line.style["stroke-width"]) for line in alike]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3
    marks = [shape for tip, shape in tipped(text) if "256 B" in tip][::2]
    assert len({tuple(x - mark.middle[0] for x, _ in mark.points) for mark in marks}) == 3


def test_a_case_with_one_size_still_shows_its_bound() -> None:
    text = draw_probe(record_of(row_of("a", 256, 4_000, 1_000)))
    flat = [
        line
        for line in lines(text, COLOURS[series_role(0)])
        if line.right < LEGEND_AT and line.right > line.left
    ]
    assert [line.right - line.left for line in flat] == [16, 16]
    assert all(y == line.middle[1] for line in flat for _, y in line.points)


def test_names_figures_and_the_origin_can_be_read() -> None:
    text = draw_probe(record_of(row_of("pe_local", 4096, 58_262, 49_262), machine="a <b> & $c$"))
    words = texts(text)
    assert {"pe_local", "bound of each", "Probe of a <b> & $c$"} <= set(words)
    assert any("machine 000000000000" in word for word in words)
    assert "pe_local, 4 KiB: 58.262 ns, at least 49.262 ns" in tips(text)
    assert "pe_local, 4 KiB: 70.3 GB/s, at most 83.1" in tips(text)


def test_cases_of_one_family_share_panels_and_lonely_ones_share_the_last() -> None:
    names = ("pe_a", "pe_b", "east", "west")
    text = draw_probe(record_of(*(row_of(name, 256, 100, 50) for name in names)))
    words = texts(text)
    assert words.count("latency") == 2
    order = [word for word in words if word in names or word == "bound of each"]
    assert order == ["pe_a", "pe_b", "bound of each", "east", "west", "bound of each"]


def test_nothing_comes_from_elsewhere() -> None:
    text = draw_probe(record_of(row_of("a", 256, 4_000, 1_000)))
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall("<script|<image|<use|url\\(| id=", text) == []


def test_a_record_without_rows_is_drawn_as_such() -> None:
    assert "no case ran" in texts(draw_probe(record_of()))


rows = st.builds(
    lambda case, size, bound, more: row_of(f"case_{case}", size, bound + more, bound),
    st.integers(0, 20),
    st.integers(1, 2**40),
    st.integers(1, 10**15),
    st.integers(0, 10**15),
)


@given(st.lists(rows, max_size=30, unique_by=lambda row: (row.case, row.bytes)))
@settings(max_examples=50)
def test_any_record_is_drawn_inside_the_picture_and_always_alike(found: list[ProbeRow]) -> None:
    record = record_of(*sorted(found, key=lambda row: (row.case, row.bytes)))
    text = draw_probe(record)
    assert draw_probe(record) == text
    width, height = size(text)
    for role in map(series_role, range(8)):
        for line in lines(text, COLOURS[role]):
            for x, y in line.points:
                assert 0 <= x <= width
                assert 0 <= y <= height
    assert {row.case for row in found} <= set(texts(text))
    assert len(tips(text)) == 2 * len(found)
