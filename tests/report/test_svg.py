import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.report.svg import Svg, shorten, text_width, write_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> ElementTree.Element:
    svg = Svg(100, 50, "a title")
    svg.text(10, 20, text, size=10)
    return ElementTree.fromstring(svg.render())


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff")
    )
)
def test_any_text_is_read_back_as_it_was_written(text: str) -> None:
    assert (drawn(text).findtext(f"{SVG}text") or "") == text


@given(st.text(st.characters(categories=["Cc", "Cs"])))
def test_what_xml_cannot_say_is_replaced_letter_by_letter(text: str) -> None:
    found = drawn("a" + text + "b").findtext(f"{SVG}text") or ""
    assert len(found) == len(text) + 2
    assert set(found[1:-1]) <= set("\N{REPLACEMENT CHARACTER}\t\n\x7f") | set(
        map(chr, range(128, 160))
    )


def test_tips_and_looks_are_escaped_too() -> None:
    svg = Svg(10, 10, '<&>"')
    svg.rect(0, 0, 1, 1, fill='"<', tip="<b>")
    root = ElementTree.fromstring(svg.render())
    rect = root.find(f"{SVG}rect")
    assert rect is not None
    assert (root.findtext(f"{SVG}title"), rect.get("fill")) == ('<&>"', '"<')
    assert rect.findtext(f"{SVG}title") == "<b>"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.001, "0"), (100, "100"), (-0.5, "-0.5"), (1 / 3, "0.33"), (10.10, "10.1")],
)
def test_numbers_have_two_decimals_at_most_and_no_more_than_needed(value: float, text: str) -> None:
    svg = Svg(10, 10, "")
    svg.rect(value, 0, 1, 1, fill="none")
    assert f'<rect x="{text}" ' in svg.render()


@given(st.text(), st.integers(0, 300), st.integers(6, 30), st.booleans())
def test_a_shortened_text_fits_and_only_a_long_one_is_shortened(
    text: str, width: int, size: int, bold: bool
) -> None:
    short = shorten(text, width, size=size, bold=bold)
    assert text_width(short, size=size, bold=bold) <= width
    assert (short == text) == (text_width(text, size=size, bold=bold) <= width)


def test_a_picture_replaces_the_older_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("old")
    write_svg(path, "new é")
    assert path.read_text(encoding="utf-8") == "new é"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", ".", "no/such/a.svg", "taken", "a\0.svg", "n" * 300])
def test_a_path_that_cannot_be_written_is_one_error_and_leaves_nothing(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "taken").mkdir()
    before = sorted(tmp_path.rglob("*"))
    path = Path(name) if name in ("", ".") else tmp_path / name
    with pytest.raises(RecordError, match=re.escape("a target that cannot be written")):
        write_svg(path, "new")
    assert sorted(tmp_path.rglob("*")) == before
