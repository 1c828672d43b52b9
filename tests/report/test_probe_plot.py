"""The plot of a probe: what is on it, where it is, and that nothing else decides its bytes."""

import re
from math import log
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.records import Breakdown, ProbeRecord, ProbeRow, installed_versions
from tilewright.report.probe_plot import COLOURS, check_plot_path, draw_probe

SVG = "{http://www.w3.org/2000/svg}"


def row_of(case: str, num_bytes: int, latency_ps: int, bound_ps: int) -> ProbeRow:
    parts = Breakdown(overhead=latency_ps, wire=0, serialisation=0, queueing=0, memory=0, refresh=0)
    return ProbeRow(
        case=case,
        bytes=num_bytes,
        issuers=1,
        latency_ps=latency_ps,
        bound_ps=bound_ps,
        ratio=latency_ps / bound_ps,
        bandwidth_gbs=1000 * num_bytes / latency_ps,
        bound_gbs=1000 * num_bytes / bound_ps,
        refresh_limited_gbs=200.0,
        utilisation=0.5,
        bottleneck="a -> b",
        breakdown_ps=parts,
    )


def record_of(*rows: ProbeRow, machine: str = "mine") -> ProbeRecord:
    return ProbeRecord(
        ok=True,
        machine=machine,
        machine_hash="0" * 64,
        versions=installed_versions(engine="reference"),
        cases=rows,
    )


def elements(text: str, name: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter(SVG + name))


def points_of(line: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in line.attrib["points"].split())
    return [(float(x), float(y)) for x, y in pairs]


def drawn(text: str, colour: str, *, dashed: bool) -> list[list[tuple[float, float]]]:
    """The lines of a colour but for the sample in the legend, panel by panel."""
    lines = [
        line
        for line in elements(text, "polyline")
        if line.attrib["stroke"] == colour and ("stroke-dasharray" in line.attrib) is dashed
    ]
    return [points for points in map(points_of, lines) if points[0][0] < 890]


def test_each_case_has_a_solid_and_a_dashed_line_in_both_panels() -> None:
    rows = [row_of(case, size, 4 * size, 2 * size) for case in "ab" for size in (256, 4096)]
    text = draw_probe(record_of(*rows))
    for colour in COLOURS[:2]:
        assert [len(points) for points in drawn(text, colour, dashed=False)] == [2, 2]
        assert [len(points) for points in drawn(text, colour, dashed=True)] == [2, 2]
    assert drawn(text, COLOURS[2], dashed=False) == []


def test_both_axes_are_logarithmic() -> None:
    sizes = (256, 1024, 65536)
    text = draw_probe(record_of(*(row_of("a", size, 10 * size, 5 * size) for size in sizes)))
    _, latency = drawn(text, COLOURS[0], dashed=False)
    (left, top), (middle_x, middle_y), (right, bottom) = latency
    share = log(1024 / 256) / log(65536 / 256)
    assert (middle_x - left) / (right - left) == pytest.approx(share, abs=1e-3)
    assert (middle_y - top) / (bottom - top) == pytest.approx(share, abs=1e-3)


def test_a_bound_below_the_latency_is_drawn_below_it_and_above_the_bandwidth() -> None:
    text = draw_probe(record_of(row_of("a", 256, 4_000, 1_000), row_of("a", 512, 8_000, 2_000)))
    found, bounds = drawn(text, COLOURS[0], dashed=False), drawn(text, COLOURS[0], dashed=True)
    for (_, rate), (_, most) in zip(found[0], bounds[0], strict=True):
        assert most < rate  # y grows downwards
    for (_, time), (_, least) in zip(found[1], bounds[1], strict=True):
        assert least > time


def test_a_case_with_one_size_still_shows_its_bound() -> None:
    text = draw_probe(record_of(row_of("a", 256, 4_000, 1_000)))
    for points in drawn(text, COLOURS[0], dashed=True):
        (left, y), (right, other_y) = points
        assert (right - left, y) == (16, other_y)


def test_names_figures_and_the_origin_can_be_read() -> None:
    text = draw_probe(record_of(row_of("pe_local", 4096, 58_262, 49_262), machine="a <b> & c"))
    words = [element.text for element in elements(text, "text")]
    assert {"pe_local", "bound of each", "Probe of a <b> & c"} <= set(words)
    assert any("machine 000000000000" in (word or "") for word in words)
    tips = [element.text for element in elements(text, "title")]
    assert "pe_local, 4 KiB: 58.262 ns, at least 49.262 ns" in tips
    assert "pe_local, 4 KiB: 70.3 GB/s, at most 83.1" in tips


def test_cases_of_one_family_share_panels_and_lonely_ones_share_the_last() -> None:
    names = ("pe_a", "pe_b", "east", "west")
    text = draw_probe(record_of(*(row_of(name, 256, 100, 50) for name in names)))
    at = {element.text: float(element.attrib["y"]) for element in elements(text, "text")}
    assert at["pe_b"] - at["pe_a"] == 20 == at["west"] - at["east"]
    assert at["east"] - at["pe_a"] > 200


def test_nothing_comes_from_elsewhere() -> None:
    text = draw_probe(record_of(row_of("a", 256, 4_000, 1_000)))
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert "<script" not in text
    assert "<image" not in text


def test_a_record_without_rows_is_drawn_as_such() -> None:
    words = [element.text for element in elements(draw_probe(record_of()), "text")]
    assert "no case ran" in words


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
    root = ElementTree.fromstring(text)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for line in elements(text, "polyline"):
        for x, y in points_of(line):
            assert 0 <= x <= width
            assert 0 <= y <= height
    cases = {row.case for row in found}
    legend = {element.text for element in elements(text, "text")}
    assert cases <= legend


@pytest.mark.parametrize("name", ["plot.txt", "no/plot.svg", "directory.svg"])
def test_a_path_that_no_plot_can_have_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory.svg").mkdir()
    with pytest.raises(RecordError):
        check_plot_path(tmp_path / name)
    check_plot_path(tmp_path / "plot.svg")
