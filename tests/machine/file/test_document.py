"""What files and ``--set`` say together: who extends whom, and what is left of a base."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import SpecError
from tilewright.machine.file.document import MachineDocument, load_document, merge_sections
from tilewright.machine.file.yaml_text import Entry, Place, Scalar, Section, Value
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import CrossbarSpec, DotArraySpec, MeshSpec


def write(directory: Path, **files: str) -> Path:
    """Files by their stem; gives the path of the first."""
    paths = [directory / f"{stem}.yaml" for stem in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths[0]


def line_of(document: MachineDocument, path: str) -> str:
    return str(document.place_of(path.split("."))).rpartition("/")[2]


def test_a_file_wins_over_its_base_key_by_key(tmp_path: Path) -> None:
    top = "extends: ./base.yaml\npe:\n  gemm: {rows: 8}\n"
    base = "sip: {count: 3}\npe:\n  gemm: {rows: 32, columns: 32}\n"
    spec = parse_machine(write(tmp_path, top=top, base=base))
    assert spec.sip.count == 3
    assert spec.pe.gemm == DotArraySpec(rows=8, columns=32)


def test_a_list_in_a_file_replaces_the_one_of_its_base(tmp_path: Path) -> None:
    top = "extends: base.yaml\ncube: {m_cpu_position_um: [1, 2]}\n"
    base = "cube: {m_cpu_position_um: [3, 4]}\n"
    assert parse_machine(write(tmp_path, top=top, base=base)).cube.m_cpu_position_um == (1, 2)


def test_of_several_bases_the_last_wins(tmp_path: Path) -> None:
    files = {"top": "extends: [a.yaml, b.yaml]", "a": "packet_bytes: 512\nname: a", "b": "name: b"}
    spec = parse_machine(write(tmp_path, **files))
    assert (spec.name, spec.packet_bytes) == ("b", 512)


def test_a_merged_value_keeps_the_file_and_line_where_it_was_written(tmp_path: Path) -> None:
    top = "extends: base.yaml\ncube:\n  hbm:\n    banks: 4\n"
    base = "# base\ncube:\n  hbm:\n    banks: 8\n    row_bytes: 2 KiB\n"
    document = load_document(write(tmp_path, top=top, base=base))
    assert line_of(document, "cube.hbm.banks") == "top.yaml line 4"
    assert line_of(document, "cube.hbm.row_bytes") == "base.yaml line 5"
    assert document.place_of(["cube", "pes"]) is None


def test_a_mistake_in_a_base_is_shown_in_the_base(tmp_path: Path) -> None:
    file = write(tmp_path, top="extends: base.yaml\nname: top", base="name: b\nsip: {cuont: 2}")
    with pytest.raises(SpecError, match=r"base\.yaml line 2: sip\.cuont: .*did you mean 'count'"):
        parse_machine(file)


def test_paths_are_relative_to_the_file_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path, base="packet_bytes: 512")
    file = write(tmp_path / "deep", top="extends: ../base.yaml")
    monkeypatch.chdir("/")
    assert parse_machine(file).packet_bytes == 512


def test_a_section_of_another_kind_keeps_what_both_kinds_have(tmp_path: Path) -> None:
    top = "extends: base.yaml\ncube: {noc: {kind: crossbar}}"
    for kind in ("", "kind: mesh, "):
        base = f"cube: {{noc: {{{kind}rows: 8, bytes_per_us: 5 GB/s}}}}"
        noc = parse_machine(write(tmp_path, top=top, base=base)).cube.noc
        assert noc == CrossbarSpec(bytes_per_us=5_000)


def test_a_section_of_the_same_kind_is_merged(tmp_path: Path) -> None:
    top, base = "extends: base.yaml\ncube: {noc: {kind: mesh}}", "cube: {noc: {rows: 8}}"
    assert parse_machine(write(tmp_path, top=top, base=base)).cube.noc == MeshSpec(rows=8)


def test_a_kind_that_does_not_choose_the_keys_keeps_inherited_values(tmp_path: Path) -> None:
    top, base = "extends: base.yaml\nfabric: {kind: ring}", "fabric: {bytes_per_us: 5 GB/s}"
    assert parse_machine(write(tmp_path, top=top, base=base)).fabric.bytes_per_us == 5_000


def test_null_takes_a_part_away_and_a_section_brings_it_back(tmp_path: Path) -> None:
    files = {
        "top": "extends: mid.yaml\nsip: {io: {noc_ps: 2 ns}}",
        "mid": "extends: crossbar-chip",
    }
    file = write(tmp_path, **files)
    assert parse_machine(tmp_path / "mid.yaml").sip.io is None
    with pytest.raises(SpecError, match=r"cube\.ucie: found no die-to-die ports with an IO chipl"):
        parse_machine(file)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"top": "extends: top.yaml"}, r"top\.yaml line 1: extends: found a circle: .*top\.yaml"),
        (
            {"top": "name: t\nextends: a.yaml", "a": "extends: b.yaml", "b": "extends: a.yaml"},
            r"b\.yaml line 1: extends: found a circle: \S*a\.yaml extends \S*b\.yaml extends \S*a",
        ),
        ({"top": "\nextends: none.yaml"}, r"line 2: extends: found no file '.*none\.yaml'"),
        ({"top": "extends: ahbm-smal"}, r"found no preset 'ahbm-smal', .*mean 'ahbm-small'\?"),
        ({"top": "extends: qqq"}, r"expected one of ahbm, .*; a path has a / in it or ends"),
        ({"top": "extends: [ahbm, 5]"}, r"line 1: extends: found something else"),
        ({"top": "extends: null"}, r"line 1: extends: found something else"),
        ({"top": "extends: {a: 1}"}, r"line 1: extends: found something else"),
        ({"top": "cube: {extends: ahbm}"}, r"cube\.extends: found an unknown key"),
        ({"top": f"extends: ./{'x' * 5000}"}, r"found no file"),
    ],
)
def test_a_base_that_cannot_be_had_is_refused_with_its_line(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        parse_machine(write(tmp_path, **files))


def test_a_circle_is_found_also_if_the_path_is_spelt_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    file = write(tmp_path, top="extends: link/top.yaml")
    with pytest.raises(SpecError, match="found a circle"):
        parse_machine(file)


def test_a_chain_of_files_that_all_extend_two_is_loaded_once_each(tmp_path: Path) -> None:
    names = [f"f{index}" for index in range(16)]
    files = {name: f"extends: [{below}.yaml, {below}.yaml]" for name, below in pairwise(names)}
    spec = parse_machine(write(tmp_path, **files, f15="name: last"))  # 2^15 paths lead there
    assert spec.name == "last"


def test_a_chain_of_seventeen_files_is_refused(tmp_path: Path) -> None:
    files = {f"f{index}": f"extends: f{index + 1}.yaml" for index in range(16)}
    with pytest.raises(SpecError, match="found a longer chain of files, expected at most 16"):
        parse_machine(write(tmp_path, **files, f16="name: last"))


@pytest.mark.parametrize("source", ["ahbn", "ahbm.txt", ""])
def test_an_unknown_name_is_not_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ahbn", "ahbm.txt"):
        (tmp_path / name).write_text("name: trap")
    with pytest.raises(SpecError, match="machine: found no preset"):
        parse_machine(source)


Tree = dict[str, "Tree"] | int | None
trees: st.SearchStrategy[Tree] = st.recursive(
    st.integers(0, 3) | st.none(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
roots = st.dictionaries(st.sampled_from("abc"), trees, max_size=3)


def tree_of(children: dict[str, Tree]) -> Section:
    place = Place("here", 1)

    def value_of(tree: Tree) -> Value:
        return tree_of(tree) if isinstance(tree, dict) else Scalar(tree, place)

    return Section({key: Entry(place, value_of(child)) for key, child in children.items()}, place)


def paths(tree: Tree, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Tree]:
    """Every leaf by its path; an empty section is a leaf too."""
    if not isinstance(tree, dict) or not tree:
        return {path: tree}
    return {p: leaf for key in tree for p, leaf in paths(tree[key], (*path, key)).items()}


@given(roots, roots)
def test_every_leaf_comes_from_the_upper_tree_or_from_where_that_is_silent(
    base: dict[str, Tree], over: dict[str, Tree]
) -> None:
    merged = MachineDocument("here", merge_sections(tree_of(base), tree_of(over), types=()))
    above = paths(over)
    for path, leaf in above.items():
        entry = merged.entry_of(path)
        if path and leaf != {}:
            assert entry is not None
            assert isinstance(entry.value, Scalar)
            assert entry.value.value == leaf
    for path, leaf in paths(base).items():
        is_hidden = any(path[: len(p)] == p and above[p] != {} for p in above)
        is_parent = any(p[: len(path)] == path for p in above)
        if path and leaf != {} and not is_hidden and not is_parent:
            entry = merged.entry_of(path)
            assert entry is not None
            assert isinstance(entry.value, Scalar)
            assert entry.value.value == leaf


@given(roots, roots)
def test_merging_again_or_with_nothing_changes_nothing(
    base: dict[str, Tree], over: dict[str, Tree]
) -> None:
    once = merge_sections(tree_of(base), tree_of(over), types=())
    assert merge_sections(once, tree_of(over), types=()) == once
    assert merge_sections(tree_of(base), tree_of({}), types=()) == tree_of(base)


def test_values_are_set_by_their_path() -> None:
    overrides = ["cube.hbm.pseudo_channels=16", "cube.noc.bytes_per_us=512 GB/s", "name=mine: a #1"]
    spec = parse_machine("ahbm", overrides)
    assert spec.cube.hbm.pseudo_channels == 16
    assert spec.cube.noc.bytes_per_us == 512_000
    assert spec.name == "mine: a #1"  # one word, not YAML: nothing of it is cut off


def test_null_leaves_a_part_out() -> None:
    overrides = ["sip.count=1", "sip.columns=1", "sip.rows=1", "sip.io=null", "cube.ucie=null"]
    spec = parse_machine("ahbm", overrides)
    assert spec.sip.io is None
    assert spec.cube.ucie is None


@pytest.mark.parametrize("text", ['name="yes"', "name='yes'"])
def test_quotes_make_text(text: str) -> None:
    assert parse_machine("ahbm", [text]).name == "yes"


def test_lists_and_sections_are_written_in_brackets() -> None:
    overrides = ["cube.m_cpu_position_um=[1_400, 4_200]", "pe.gemm={rows: 8, hz: 2_000}"]
    spec = parse_machine("ahbm", overrides)
    assert spec.cube.m_cpu_position_um == (1_400, 4_200)
    assert (spec.pe.gemm.rows, spec.pe.gemm.hz, spec.pe.gemm.columns) == (8, 2_000, 16)


def test_of_two_values_for_one_path_the_last_counts() -> None:
    assert parse_machine("ahbm", ["sip.count=3", "sip.count=4"]).sip.count == 4


def test_a_changed_kind_keeps_the_keys_set_beside_it_in_any_order() -> None:
    overrides = ["cube.noc.radius_um=5", "cube.noc.kind=crossbar"]
    for order in (overrides, overrides[::-1]):
        assert parse_machine("ahbm-small", order).cube.noc == CrossbarSpec(radius_um=5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cube.hbm.x=5", r"^--set cube\.hbm\.x: found an unknown key, expected one of impl,"),
        ("cube.hbm.bnaks=5", r"^--set cube\.hbm\.bnaks: .*; did you mean 'banks'\?$"),
        ("cube.hbm.banks=many", r"^--set cube\.hbm\.banks: found 'many', expected a whole number"),
        ("cube.hbm.banks=0", r"^--set cube\.hbm\.banks: found 0, expected at least 1"),
        ("cube.hbm.banks=3", r"^--set cube\.hbm\.banks: found 3, expected a power of two"),
        ("cube.hbm.banks=010", r"^--set cube\.hbm\.banks: found the number 010"),
        ("cube.hbm.banks=", r"^--set cube\.hbm\.banks: found no value"),
        ("cube.hbm.banks", r"^--set: found 'cube\.hbm\.banks', expected PATH=VALUE"),
        ("=5", r"^--set: found '=5'"),
        ("a..b=5", r"^--set: found 'a\.\.b=5'"),
        ("cube=5", r"^--set cube: found 5, expected a section"),
        ("cube.pes.x=5", r"^--set cube\.pes\.x: cube\.pes: found a section, expected a whole"),
        ("extends=hbm3", r"^--set extends: found an unknown key"),
        ("name=[1", r"^--set name: found broken YAML"),
        ("name=[!x 1]", r"^--set name: 0: found the tag !x, expected no tags"),
        ("name=a\x1bb", r"^--set: found the character U\+001B in 'name=a\\x1bb', expected print"),
        ('name="a\x07b"', r"^--set: found the character U\+0007 in "),
        ("na\x1bme=a", r"^--set: found the character U\+001B in "),
        ("name=a\nb", r"^--set: found the character U\+000A in "),
        ("name=a\u2028b", r"^--set: found the character U\+2028 in "),
        ('name="a\\nb"', r"^--set name: found 'a\\nb', expected text of one line"),
        ('name="a\\x1bb"', r"^--set name: found an escape for U\+001B"),
        ("packet_bytes=100", r"^--set packet_bytes: found 100 with flit_bytes 64"),
        ("flit_bytes=100", r"^--set flit_bytes: packet_bytes: found 1024 with flit_bytes 100"),
    ],
)
def test_a_wrong_override_is_refused_with_its_own_path(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_machine("ahbm", [text])
