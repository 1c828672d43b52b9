"""What the reader takes, what it refuses, and that every value knows its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import SpecError
from tilewright.machine.file.yaml_scalar import Refusal, resolve_plain
from tilewright.machine.file.yaml_text import (
    Items,
    Scalar,
    Section,
    Value,
    load_yaml_with_lines,
    parse_yaml,
)


def plain(value: Value) -> object:
    match value:
        case Scalar():
            return value.value
        case Items():
            return [plain(item) for item in value.values]
        case Section():
            return {key: plain(entry.value) for key, entry in value.entries.items()}


def read(text: str) -> object:
    return plain(parse_yaml(text, "m.yaml"))


def test_mappings_lists_text_numbers_and_words_are_read() -> None:
    text = 'a: {b: 1_024, c: -3}\nd: [true, null, "yes", 12.5 ns]\ne: |\n  two\n  lines\n'
    expected = {
        "a": {"b": 1024, "c": -3},
        "d": [True, None, "yes", "12.5 ns"],
        "e": "two\nlines\n",
    }
    assert read(text) == expected


def test_json_is_read_too() -> None:
    assert read('{"cube": {"pes": 8, "ucie": null}}') == {"cube": {"pes": 8, "ucie": None}}


def test_every_key_and_value_knows_its_line() -> None:
    root = parse_yaml("a:\n  b:\n    - 1\n    - 2\nc:\n  text\n", "m.yaml")
    inner = root.entries["a"].value
    assert isinstance(inner, Section)
    assert (inner.entries["b"].place.line, root.entries["c"].place.line) == (2, 5)
    items = inner.entries["b"].value
    assert isinstance(items, Items)
    assert [item.place.line for item in items.values] == [3, 4]
    assert str(root.entries["c"].value.place) == "m.yaml line 6"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!python/object:os.system x", r"line 1: a: found the tag !!python/object:os\.system"),
        ("a: !mine 5", r"line 1: a: found the tag !mine"),
        ("a: ! x", r"line 1: a: found the tag !"),
        ("a: &x 5\nb: *x", r"line 1: a: found the anchor &x"),
        ("a: 1\nb: *x", r"line 2: b: found the alias \*x"),
        ("a:\n  b: 1\n  b: 2", r"line 3: a\.b: found the key a second time \(first in line 2\)"),
        ("1: x", r"line 1: found the key 1, which is no text"),
        ("null: x", r"line 1: found the key null, which is no text"),
        ("a: {<<: {b: 1}}", r"line 1: a: found the merge key <<, expected a name"),
        ("a: 1\n---\nb: 2", r"line 2: found a second document"),
        ("- 1\n- 2", r"line 1: found a list or a single value, expected a mapping"),
        ("just text", r"found a list or a single value"),
        ("# nothing\n", r"m\.yaml: found nothing but space and comments"),
        ("? [a]\n: 1", r"line 1: found a collection as a key"),
        ("a: [1, {b: 2.5}]", r"line 1: a\.1\.b: found the number 2\.5, expected a whole number"),
        ("a:", r"line 1: a: found no value"),
        ("a: b: c", r"line 1: found broken YAML \(mapping values are not allowed here\)"),
        ("a: [1", r"found broken YAML"),
        ("\ta: 1", r"line 1: found broken YAML"),
        ('a: "\\x00"', r"line 1: a: found an escape for U\+0000"),
        ('a: "\\ud800"', r"line 1: a: found an escape for U\+D800"),
        ('a: "\\U00110000"', r"m\.yaml: found a number that YAML cannot have"),
        ("a: 1\nb: \x07", r"line 2: found the character U\+0007"),
        ("a: x\u2028y", r"line 1: found the character U\+2028"),
        ("%TAG ! tag:x,2000:\n---\na: 1", r"found %TAG"),
    ],
)
def test_what_yaml_allows_and_a_machine_does_not_need_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_yaml(text, "m.yaml")


NO_BOOLEAN = ["yes", "No", "ON", "off", "True", "FALSE", "Null", "~", ""]
NO_INTEGER = ["010", "0x1F", "0o17", "0b1", "+5", "1:30", "1__0", "1_", "9" * 30]
NO_FRACTION = ["1.5", "1.", ".5", "1e3", "1.5E-3", "-.inf", ".NaN"]


@pytest.mark.parametrize("word", [*NO_BOOLEAN, *NO_INTEGER, *NO_FRACTION])
def test_a_word_that_reads_in_two_ways_is_no_value(word: str) -> None:
    assert isinstance(resolve_plain(word), Refusal)


@pytest.mark.parametrize("word", ["12.5 ns", "1.2.3", "2026-11-16", "ahbm-8sip", "5x", "e3", "_1"])
def test_other_words_are_text_as_written(word: str) -> None:
    assert resolve_plain(word) == word


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_number_is_what_its_digits_say(number: int) -> None:
    assert resolve_plain(str(number)) == number
    assert resolve_plain(f"{number:_}") == number


def test_a_number_beyond_int64_is_refused() -> None:
    for text in (str(2**63), str(-(2**63)), "1" + "0" * 5000):
        assert isinstance(resolve_plain(text), Refusal)


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_an_unquoted_word_is_a_number_only_if_python_reads_the_same_number(text: str) -> None:
    value = resolve_plain(text)
    if type(value) is int:
        assert int(text) == value
    elif isinstance(value, str):
        assert value == text


@pytest.mark.parametrize(
    ("start", "repeated", "found"),
    [
        ("x: ", "[", "a deeper tree"),
        ("x: ", "{a: ", "a deeper tree"),
        ("", "- ", "a deeper tree"),
        ("", "? ", "a collection as a key"),
    ],
)
def test_a_deep_tree_is_refused_before_it_is_read(start: str, repeated: str, found: str) -> None:
    with pytest.raises(SpecError, match=found):
        parse_yaml(start + repeated * 100_000, "m.yaml")


def test_thirty_two_levels_are_not_too_deep() -> None:
    assert read("a: " + "[" * 31 + "1" + "]" * 31)
    with pytest.raises(SpecError, match="at most 32 levels"):
        read("a: " + "[" * 32 + "1" + "]" * 32)


def test_a_file_of_more_than_one_mebibyte_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("# " + "x" * 2**20)
    with pytest.raises(SpecError, match="expected a machine file of at most 1048576 bytes"):
        load_yaml_with_lines(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: \xff\n", r"m\.yaml line 2: found the byte 0xff, which is no UTF-8"),
        ("a: 1".encode("utf-16"), r"no UTF-8"),
        (b"a: \x00", r"line 1: found the character U\+0000"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=message):
        load_yaml_with_lines(file)


def test_a_byte_order_mark_and_carriage_returns_are_no_content(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    root = load_yaml_with_lines(file)
    assert plain(root) == {"a": 1, "b": 2}
    assert root.entries["b"].place.line == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path, Path("a\0b")):
        with pytest.raises(SpecError, match="found a file that cannot be read"):
            load_yaml_with_lines(path)
