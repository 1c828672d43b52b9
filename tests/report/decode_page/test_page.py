"""A page of decode steps: whole, self-contained, and with the figures that it was given."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings

from tests.report.decode_page.pages import FLOWS, SMALL, pages, typical_page
from tests.report.drawn import Shape, tipped
from tilewright.analysis.phases import spread_of
from tilewright.errors import RecordError
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.report.decode_page.model import DecodePage, ShownUsage
from tilewright.report.decode_page.page import decode_page_text, write_decode_page
from tilewright.report.decode_page.plot import draw_stages
from tilewright.report.format import width_text
from tilewright.units import format_ps

SVG = "{http://www.w3.org/2000/svg}"
few = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


def parsed(page: DecodePage) -> ElementTree.Element:
    return ElementTree.fromstring(decode_page_text(page))


def tables(page: DecodePage) -> dict[str, list[list[str]]]:
    """Cells of all rows below the head, by the caption of their table."""
    return {
        table.findtext("caption") or "": [
            ["".join(cell.itertext()) for cell in row] for row in table.findall("tbody/tr")
        ]
        for table in parsed(page).iter("table")
    }


def pictures(page: DecodePage) -> Iterator[ElementTree.Element]:
    return parsed(page).iter(f"{SVG}svg")


@few
@given(pages())
def test_any_page_is_well_formed_and_says_all_that_it_was_given(page: DecodePage) -> None:
    root = parsed(page)
    said = "".join(root.find("body").itertext())  # type: ignore[union-attr]
    assert root.findtext("head/title") == page.title
    texts = [*page.meaning, page.quality_note, page.steps_note, *page.flows]
    texts += [*page.commands, *page.commands.values()]
    assert [text for text in texts if text not in said] == []


@few
@given(pages())
def test_the_latencies_of_every_step_stand_in_a_table_to_the_picosecond(page: DecodePage) -> None:
    rows = {(row[0], row[1], row[4]) for row in tables(page)["Points of the plot"]}
    contexts = {step.context for step in page.steps}
    assert len(rows) == len(page.flows) * len(contexts)
    latencies = {f"{step.attention.latency_ps:,}" for step in page.steps}
    assert {latency for _, _, latency in rows} == latencies


def test_a_latency_stands_with_its_half_width_smallest_and_largest() -> None:
    phases = spread_of(
        [10_000_000] * 8 + [11_000_000],
        interval_ps=3_900_000, refresh_ps=530_000, slices=8, reason="narrow",
    )  # fmt: skip
    page = typical_page()
    first, *others = page.steps
    attention = first.attention.model_copy(update={"phases": phases})
    first = first.model_copy(update={"attention": attention})
    page = replace(page, steps=[first, *others])
    rows = tables(page)["Points of the plot"]
    assert [row[5:] for row in rows[:2]] == [
        [width_text(phases), "10 us to 11 us"],
        ["-", "-"],
    ]


@few
@given(pages())
def test_every_stage_of_every_step_has_its_row_with_latency_and_bytes(page: DecodePage) -> None:
    expected = [
        [
            step.label,
            stage.name,
            format_ps(stage.latency_ps),
            f"{stage.bytes:,}",
            f"{stage.ideal_bytes:,}",
        ]
        for step in page.steps
        for stage in step.attention.stages
    ]
    rows = [[*row[:3], *row[4:6]] for row in tables(page)["Stages"]]
    assert sorted(rows) == sorted(expected)


@few
@given(pages())
def test_the_pieces_of_each_bar_lie_end_to_end_and_all_bars_of_shares_are_equally_long(
    page: DecodePage,
) -> None:
    bars: dict[str, list[Shape]] = {}
    for tip, shape in tipped(draw_stages(page)):
        if tip.endswith(" %"):
            bars.setdefault(tip.rsplit(": ", 1)[0].rsplit(", ", 1)[0], []).append(shape)
    assert len(bars) == len({step.label for step in page.steps})
    for pieces in bars.values():
        for piece, following in pairwise(pieces):
            assert following.left == pytest.approx(piece.right, abs=0.1)
    lefts = {pieces[0].left for pieces in bars.values()}
    rights = [pieces[-1].right for pieces in bars.values()]
    assert len(lefts) == 1
    assert rights == pytest.approx([rights[0]] * len(rights), abs=0.1)


@few
@given(pages())
def test_the_bars_of_latencies_are_as_long_as_the_latencies(page: DecodePage) -> None:
    shapes = [(tip, shape) for tip, shape in tipped(draw_stages(page)) if not tip.endswith(" %")]
    steps = sorted(page.steps, key=lambda step: step.context)
    assert [tip for tip, _ in shapes] == [format_ps(step.attention.latency_ps) for step in steps]
    lengths = [shape.right - shape.left for _, shape in shapes]
    longest_ps = max(step.attention.latency_ps for step in steps)
    expected = [max(lengths) * step.attention.latency_ps / longest_ps for step in steps]
    assert lengths == pytest.approx(expected, abs=0.1)


def test_the_headline_has_quality_time_and_bottleneck_of_each_flow_in_one_row() -> None:
    page = typical_page()
    rows = next(rows for caption, rows in tables(page).items() if caption.startswith("Decode"))
    assert [row[0] for row in rows] == list(FLOWS)
    quest = rows[1]
    assert quest[1:4] == ["15/16", "97 %", "0.030"]
    assert (quest[5], quest[7], quest[9]) == ("25.0 x", "25.0 x", "HBM 93 %")


def test_equal_pages_give_equal_bytes() -> None:
    assert decode_page_text(typical_page()) == decode_page_text(typical_page())


def test_a_page_fetches_nothing_and_runs_nothing() -> None:
    text = decode_page_text(typical_page())
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not a place
    root = parsed(typical_page())
    used = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert used.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "image", "use"})
    assert "url(" not in text
    policy = root.find("head/meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    assert "default-src 'none'" in (policy.get("content") or "")


def test_every_picture_has_a_title_and_a_table_follows_each_plot() -> None:
    page = typical_page()
    assert all(drawn.findtext(f"{SVG}title") for drawn in pictures(page))
    sections = [s for s in parsed(page).iter("section") if s.find("figure") is not None]
    assert len(sections) == 3
    for section in sections:
        kinds = [element.tag for element in section.iter() if element.tag in ("figure", "table")]
        assert kinds.index("figure") < len(kinds) - 1 - kinds[::-1].index("table")


def test_every_colour_that_a_picture_names_is_set_for_light_and_for_dark_screens() -> None:
    text = decode_page_text(typical_page())
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    light, dark = re.findall(r":root \{([^}]*)\}", text)
    for colours in (light, dark):
        assert used <= set(re.findall(r"(--[\w-]+):", colours))


def test_the_picture_of_the_machine_has_every_share_of_its_busiest_cube() -> None:
    name = "sip0.cube2.hbm_ctrl.pe1"
    links = [f"{name} -> sip0.cube2.r0c3", "sip0.cube2.r0c2 -> sip0.cube2.r0c3"]
    links = [link for link in links if link in names_of_links()]
    shares = {name: 0.5} | dict.fromkeys(links, 0.37)
    page = replace(typical_page(), usages=[ShownUsage("dense", 32 * 1024, shares)])
    tips = [title.text or "" for drawn in pictures(page) for title in drawn.iter(f"{SVG}title")]
    assert f"{name}: the slice of PE 1 50 %" in tips
    assert all(f"{link}: 37 %" in tips for link in links)
    assert len(links) > 0


def names_of_links() -> set[str]:
    return {SMALL.link_name(link) for link in range(len(SMALL.links))}


def test_a_cube_without_a_mesh_is_drawn_with_its_memories_alone() -> None:
    machine = build_machine(parse_machine("crossbar-chip"))
    page = typical_page(machine)
    tips = [title.text or "" for drawn in pictures(page) for title in drawn.iter(f"{SVG}title")]
    assert any(tip.startswith("sip0.cube0, slice of PE 0") for tip in tips)


def test_a_written_page_replaces_an_older_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("old")
    write_decode_page(file, typical_page())
    assert file.read_text(encoding="utf-8") == decode_page_text(typical_page())
    assert list(tmp_path.iterdir()) == [file]


def test_a_page_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"No such file.*expected a writable path for the page"):
        write_decode_page(tmp_path / "missing" / "page.html", typical_page())
