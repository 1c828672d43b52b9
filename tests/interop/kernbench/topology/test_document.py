"""Topology files: formats, lines, parse errors."""

import json
from pathlib import Path

import pytest
import yaml

from tilewright.errors import SpecError
from tilewright.interop.kernbench.topology.document import (
    load_topology_document,
    topology_of_mapping,
)

DEFAULT = Path(__file__).parent / "default.yaml"


def write(tmp_path: Path, text: str, name: str = "topology.yaml") -> Path:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_read_as_yaml_reads_it() -> None:
    document = load_topology_document(DEFAULT)
    assert document.spec == yaml.safe_load(DEFAULT.read_text())


def test_json_yaml_and_a_mapping_have_the_same_values(tmp_path: Path) -> None:
    spec = yaml.safe_load(DEFAULT.read_text())
    file = write(tmp_path, json.dumps(spec, indent="\t"), "topology.json")
    assert load_topology_document(file).spec == spec
    assert topology_of_mapping(spec).spec == spec


def test_a_key_has_its_line_and_a_missing_one_that_of_its_section(tmp_path: Path) -> None:
    document = load_topology_document(write(tmp_path, "# first\nsystem:\n  sips:\n    count: 2\n"))
    assert document.place_of(("system", "sips", "count")).line == 4
    assert document.place_of(("system", "sips", "cubes_per_sip")).line == 3
    assert document.place_of(("cube",)).line is None


def test_a_key_of_json_has_its_line_behind_tabs(tmp_path: Path) -> None:
    file = write(tmp_path, '{\n\t"system": {\n\t\t"ns_per_mm": 1e-2}}', "topology.json")
    document = load_topology_document(file)
    assert document.place_of(("system", "ns_per_mm")).line == 3
    assert document.spec == {"system": {"ns_per_mm": 0.01}}


def test_merged_and_repeated_sections_mean_what_yaml_says(tmp_path: Path) -> None:
    text = "a: &a {w: 4, h: 4}\nb:\n  <<: *a\n  h: 2\nc: *a\n"
    document = load_topology_document(write(tmp_path, text))
    assert document.spec["b"] == {"w": 4, "h": 2}
    assert document.place_of(("b", "h")).line == 4
    assert document.place_of(("b", "w")).line == 1


@pytest.mark.parametrize(
    ("name", "text", "where", "found"),
    [
        ("t.yaml", "system: [1\nsip: 2\n", " line 2 column 4", "broken YAML"),
        ("t.yaml", "system:\n\tsips: 2\n", " line 2 column 1", "broken YAML"),
        ("t.yaml", "a: 1\nb: \x07\n", " line 2 column 4", "special characters"),
        ("t.yaml", "a: 1\n---\nb: 2\n", " line 2 column 1", "another document"),
        ("t.yaml", "a: !!python/name:os.system\n", " line 1 column 4", "could not determine"),
        ("t.json", '{"a": 1,\n "b" 2}', " line 2 column 6", "Expecting ':'"),
        ("t.json", "", " line 1 column 1", "broken JSON"),
    ],
)
def test_a_parse_error_has_line_and_column(
    tmp_path: Path, name: str, text: str, where: str, found: str
) -> None:
    file = write(tmp_path, text, name)
    with pytest.raises(SpecError) as caught:
        load_topology_document(file)
    assert caught.value.where == f"{file}{where}"
    assert found in caught.value.found


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.yaml", "- 1\n- 2\n"), ("t.yaml", "7\n"), ("t.json", "[1, 2]"), ("t.json", '"text"')],
)
def test_a_root_that_is_no_mapping_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(SpecError, match=r"line 1: found a list or a single value"):
        load_topology_document(write(tmp_path, text, name))


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match="nothing but space and comments"):
        load_topology_document(write(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.yaml", "system:\n  a: 1\n  a: 2\n"), ("t.json", '{"system": {"a": 1,\n\n"a": 2}}')],
)
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(SpecError, match=r"line 3: a: found the key a second time \(first in line"):
        load_topology_document(write(tmp_path, text, name))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a {b: *a}\n",
        "a: " + "[" * 600 + "]" * 600 + "\n",
        "l0: &x0 {}\n"
        + "".join(f"l{i + 1}: &x{i + 1} {{a: *x{i}, b: *x{i}}}\n" for i in range(20)),
        "a: " + "9" * 5000 + "\n",
        "a: 2024-99-99\n",
    ],
    ids=["a circle", "a deep list", "a tree of aliases", "a long number", "no date"],
)
def test_a_hostile_file_is_refused_and_not_obeyed(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError):
        load_topology_document(write(tmp_path, text))


def test_a_file_that_is_no_text_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(SpecError, match=r"line 2 column 4: found the byte 0xff"):
        load_topology_document(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file"):
        load_topology_document(tmp_path / "no.yaml")


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="more than 1048576 bytes"):
        load_topology_document(write(tmp_path, "# " + "x" * 2**20))
