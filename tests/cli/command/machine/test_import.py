"""``tilewright machine import``: the file, the report, the refusals, and nothing half-written."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.cli.app import run
from tilewright.machine import machine_hash, parse_machine

Run = Callable[..., tuple[int, str, str]]

TOPOLOGY = """\
system:
  sips: {count: 1, cubes_per_sip: 4}
sip:
  cube_mesh: {w: 2, h: 2}
cube:
  components:
    ucie: {pos_mm: [0, 7], attrs: {overhead_ns: 4}}
"""


@pytest.fixture
def import_(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("topology.yaml").write_text(TOPOLOGY)

    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = run(("machine", "import", *arguments))
        output, errors = capsys.readouterr()
        return int(status), output, errors

    return run_and_capture


def test_without_a_target_the_machine_file_is_printed_and_nothing_written(
    import_: Run, tmp_path: Path
) -> None:
    status, output, errors = import_("topology.yaml")
    assert status == 0
    assert errors == "1 keys have no effect: see the end of the file\n"
    assert [file.name for file in tmp_path.iterdir()] == ["topology.yaml"]
    (tmp_path / "printed.yaml").write_text(output)
    spec = parse_machine(tmp_path / "printed.yaml")
    assert (spec.sip.count, spec.sip.num_cubes) == (1, 4)
    assert "side_ps: 4 ns" in output
    assert "# cube.components.ucie.attrs.overhead_ns" in output


def test_a_written_file_passes_the_check_and_the_report_lists_what_has_no_effect(
    import_: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output, errors = import_("topology.yaml", "-o", "mine.yaml")
    assert (status, errors) == (0, "")
    assert output.splitlines() == [
        "topology.yaml: a machine of 32 PEs, written to mine.yaml",
        "5 values differ from ahbm",
        "absent, KernBench's default holds: cube.pe_template.components.pe_mmu.attrs.page_size",
        "without effect: cube.components.ucie.pos_mm (the layout here follows from the counts)",
        "no warnings",
    ]
    assert run(("machine", "check", "mine.yaml")) == 0
    assert capsys.readouterr().out == "topology: a valid machine of 32 PEs\nno warnings\n"


def test_the_same_topology_gives_the_same_bytes(import_: Run) -> None:
    first = import_("topology.yaml")
    assert import_("topology.yaml", "-o", "a.yaml")[0] == 0
    assert import_("topology.yaml") == first
    assert Path("a.yaml").read_text() == first[1]


def test_the_document_has_the_text_and_every_field_with_its_key(import_: Run) -> None:
    status, output, errors = import_("topology.yaml", "--json", "-o", "mine.yaml")
    document = json.loads(output)
    assert (status, errors) == (0, "")
    assert (document["kind"], document["file"]) == ("machine_import", "mine.yaml")
    assert document["text"] == Path("mine.yaml").read_text()
    assert document["machine_hash"] == machine_hash(parse_machine(Path("mine.yaml")))
    assert document["num_pes"] == 32
    assert {
        "field": "cube.ucie.side_ps",
        "value": 4000,
        "key": "cube.components.ucie.attrs.overhead_ns",
        "is_default": False,
    } in document["fields"]
    assert list(document["without_effect"]) == ["cube.components.ucie.pos_mm"]


def test_without_a_target_the_document_has_the_text_alone(import_: Run, tmp_path: Path) -> None:
    status, output, _ = import_("topology.yaml", "--json")
    document = json.loads(output)
    assert (status, document["file"]) == (0, None)
    assert document["text"].startswith("# topology: imported from the KernBench topology")
    assert [file.name for file in tmp_path.iterdir()] == ["topology.yaml"]


def test_an_existing_file_is_kept_unless_forced(import_: Run) -> None:
    Path("mine.yaml").write_text("name: precious\n")
    status, output, errors = import_("topology.yaml", "-o", "mine.yaml")
    assert (status, output) == (2, "")
    assert "error: -o mine.yaml\n" in errors
    assert "add --force to replace it" in errors
    assert Path("mine.yaml").read_text() == "name: precious\n"
    assert import_("topology.yaml", "-o", "mine.yaml", "--force")[0] == 0
    assert "imported from" in Path("mine.yaml").read_text()


def test_the_topology_itself_is_never_replaced(import_: Run) -> None:
    status, _, errors = import_("topology.yaml", "-o", "./topology.yaml", "--force")
    assert status == 2
    assert "the topology itself" in errors
    assert Path("topology.yaml").read_text() == TOPOLOGY


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_all_mistakes_are_told_and_nothing_is_written(
    import_: Run, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    Path("topology.yaml").write_text("system:\n  racks: 2\ncube:\n  links: {ucie_bw: 8}\n")
    Path("mine.yaml").write_text("name: precious\n")
    status, output, errors = import_("topology.yaml", "-o", "mine.yaml", "--force", *flags)
    told = json.loads(output)["error"]["found"] if flags else errors
    assert status == 2
    assert "2 mistakes:" in told
    assert "topology.yaml line 2: system.racks: found an unknown key" in told
    assert "topology.yaml line 4: cube.links.ucie_bw: found an unknown key" in told
    assert "did you mean 'ucie_bw_gbs'?" in told
    assert Path("mine.yaml").read_text() == "name: precious\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.yaml", "topology.yaml"]


def test_one_mistake_is_told_with_its_four_parts(import_: Run) -> None:
    Path("topology.yaml").write_text("system: {sips: {count: none}}\n")
    status, output, errors = import_("topology.yaml")
    assert (status, output) == (2, "")
    assert errors.splitlines() == [
        "error: topology.yaml line 1: system.sips.count",
        "  found     'none'",
        "  expected  a whole number of at least 1",
        "  to do     write it in digits; no value is above 10^18",
    ]


def test_a_parse_error_is_told_with_line_and_column(import_: Run) -> None:
    Path("topology.yaml").write_text("system:\n  sips: [1\n")
    status, _, errors = import_("topology.yaml")
    assert status == 2
    assert "error: topology.yaml line 3 column 1" in errors


def test_a_write_that_fails_leaves_nothing_behind(
    import_: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)  # after the bytes were written
    status, output, errors = import_("topology.yaml", "-o", "mine.yaml")
    assert (status, output) == (2, "")
    assert "No space left on device" in errors
    assert [file.name for file in tmp_path.iterdir()] == ["topology.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no.yaml",), "a file that cannot be read (No such file or directory)"),
        (("topology.yaml", "-o", "no/mine.yaml"), "no directory 'no'"),
        (("topology.yaml", "--force"), "--force without -o"),
        ((), "TOPOLOGY"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_to_do(
    import_: Run, arguments: tuple[str, ...], message: str
) -> None:
    status, output, errors = import_(*arguments)
    assert (status, output) == (2, "")
    assert message in errors
    assert "Traceback" not in errors
