"""``tilewright machine show``: tree and totals, machine file, picture, document."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.cli.app import run
from tilewright.machine.build import build_machine, machine_hash
from tilewright.machine.parse import parse_machine
from tilewright.machine.presets import list_presets
from tilewright.report.machine_svg.picture import draw_machine

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "80")

    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = run(("machine", "show", *arguments))
        output, errors = capsys.readouterr()
        return int(status), output, errors

    return run_and_capture


def test_the_default_machine_is_shown_with_its_totals(show: Run) -> None:
    status, output, errors = show()
    assert (status, errors) == (0, "")
    totals = dict(re.findall(r"^ (\S.*\S) {3,}(\S.*\S) *$", output, re.MULTILINE))
    assert totals == {
        "PEs": "256",
        "f16 peak": "2,097.152 TFLOPS",
        "HBM capacity": "1.5 TiB",
        "HBM bandwidth, nominal": "65.536 TB/s",
        "HBM bandwidth, limited by refresh": "55.924 TB/s (85.33%)",
        "bisection of a cube's network": "1.024 TB/s",
        "bisection of a SIP's cube mesh": "2.048 TB/s",
        "bisection of the fabric": "512 GB/s",
    }
    assert "no warnings\n2,416 nodes and 6,316 links, proved free of deadlock" in output
    assert re.search(r"; built in \d+\.\d\d s\n$", output)


def test_the_tree_goes_from_the_host_down_to_the_units_of_a_pe(show: Run) -> None:
    _, output, _ = show("ahbm")
    names = re.findall(r"[├└]── ([^:(]+?)(?: \(.*?\))?:", output)
    assert names == [
        *("host", "fabric", "SIP", "IO chiplet", "cube mesh", "cube"),
        *("network", "ports", "HBM", "SRAM", "M_CPU", "PE"),
        *("HBM slice", "DMA", "MMU", "TCM", "registers", "GEMM unit", "vector unit"),
        *("PE CPU", "scheduler"),
    ]
    assert "network: mesh of 6 x 6 routers with a hole of 2 x 2, 256 GB/s, 1 ns" in output
    assert "M_CPU: 5 ns a command, on r0c2" in output
    assert "SRAM: 32 MiB, 128 GB/s, 2 ns, on r3c0" in output


@pytest.mark.parametrize("preset", list_presets())
def test_no_line_of_a_preset_is_wrapped_at_80_columns(show: Run, preset: str) -> None:
    status, output, _ = show(preset)
    assert status == 0
    lines = output[: output.index("\n ")].splitlines()  # the tree, up to the table
    assert all("──" in line for line in lines[1:])


def test_a_machine_without_parts_says_so(show: Run) -> None:
    _, output, _ = show("crossbar-chip")
    words = ("fabric: none", "IO chiplet: none", "ports: none", "network: crossbar, 128 GB/s, 4 ns")
    assert all(word in output for word in words)
    assert output.count("nothing to cut") == 2


def test_a_memory_clock_beyond_what_an_engine_can_count_is_refused(show: Run) -> None:
    status, _, errors = show("ahbm-small", "--set", "cube.hbm.timing.clock_ps=2 us")
    assert status == 2
    assert "expected  at most 1048576" in errors


def test_warnings_and_overrides_are_shown(show: Run) -> None:
    status, output, _ = show("ahbm-small", "--set", "fabric.links=2", "--set", "pe.gemm.rows=8")
    assert status == 0
    assert "GEMM unit: 8 x 16 x 16 at 1 GHz, 4.096 TFLOPS f16" in output
    assert "warning: --set fabric.links: has no effect" in output
    assert "no warnings" not in output


def test_brackets_in_a_name_are_no_markup(show: Run) -> None:
    _, output, _ = show("ahbm-small", "--set", 'name="[red]mine[/red]"')
    assert output.startswith("[red]mine[/red]: ")


def test_the_document_has_spec_figures_and_attachments(show: Run, tmp_path: Path) -> None:
    path = tmp_path / "small.svg"
    status, output, errors = show("ahbm-small", "--json", "--svg", str(path))
    document = json.loads(output)
    spec = parse_machine("ahbm-small")
    machine = build_machine(spec)
    assert (status, errors) == (0, "")
    assert (document["kind"], document["schema_version"]) == ("machine_show", 1)
    assert document["machine_hash"] == machine_hash(spec)
    assert document["spec"] == spec.model_dump(mode="json")
    assert document["figures"]["num_pes"] == 16
    assert document["figures"]["fabric_bisection_bytes_per_us"] is None
    assert (document["num_nodes"], document["num_links"]) == (
        len(machine.nodes),
        len(machine.links),
    )
    seats = machine.attachments()
    assert document["attachments"].items() <= seats.items()
    assert 4 * len(document["attachments"]) == len(seats)
    assert document["build_seconds"] > 0
    assert document["picture"] == str(path)


@pytest.mark.parametrize("preset", list_presets())
def test_the_machine_file_of_a_preset_reads_back_as_the_same_machine(
    show: Run, tmp_path: Path, preset: str
) -> None:
    status, output, errors = show(preset, "--yaml", "--set", "cube.noc.bytes_per_us=100 GB/s")
    file = tmp_path / "mine.yaml"
    file.write_text(output, encoding="utf-8")
    assert (status, errors) == (0, "")
    assert parse_machine(file) == parse_machine(preset, ["cube.noc.bytes_per_us=100 GB/s"])


def test_the_machine_file_has_units_and_explains_its_fields(show: Run) -> None:
    _, output, _ = show("--yaml")
    lines = [line.strip() for line in output.splitlines()]
    words = " ".join(" ".join(lines).split())
    assert "bytes_per_us: 256 GB/s # router to router, each way" in words
    assert "capacity_bytes: 48 GiB # one stack" in words
    assert "overhead_bytes: 24 #" in words  # takes no unit
    assert not re.search(r"^ *(impl|parameters):", output, re.MULTILINE)


def test_a_block_of_the_user_that_does_not_fit_is_refused(show: Run) -> None:
    impl, parameters = "cube.sram.impl=json:JSONDecoder", 'cube.sram.parameters={"strict": true}'
    status, _, errors = show("ahbm", "--set", impl, "--set", parameters)
    assert status == 2
    assert "error: --set cube.sram.impl" in errors


def test_the_picture_is_written_and_named(show: Run, tmp_path: Path) -> None:
    path = tmp_path / "small.svg"
    status, output, _ = show("ahbm-small", "--svg", str(path))
    assert status == 0
    assert f"picture: {path}" in output.replace("\n", "")
    drawn = draw_machine(build_machine(parse_machine("ahbm-small")))
    assert path.read_bytes() == drawn.encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("flags", [(), ("--json",), ("--yaml",)])
def test_a_picture_that_cannot_be_written_ends_with_2_and_one_message(
    show: Run, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    status, output, errors = show("ahbm-small", "--svg", str(tmp_path / "no" / "a.svg"), *flags)
    told = json.loads(output)["error"]["found"] if flags == ("--json",) else errors
    assert status == 2
    assert "a target that cannot be written (No such file or directory)" in told
    assert list(tmp_path.iterdir()) == []
    assert "├──" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ahbn",), "did you mean 'ahbm'?"),
        (("./no.yaml",), "a file that cannot be read (No such file or directory)"),
        (("ahbm", "--set", "cube.hbm.bnaks=1"), "did you mean 'banks'?"),
        (("ahbm", "--set", "sip.count=0", "--set", "cube.pes=x"), "2 mistakes:"),
        (("ahbm", "--set", "cube.sram.capacity_bytes=64 GiB"), "--set cube.sram.capacity_bytes"),
        (("--yaml", "--json"), "one form of output"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_to_do(
    show: Run, arguments: tuple[str, ...], message: str
) -> None:
    status, output, errors = show(*arguments)
    told = output if "--json" in arguments else errors
    assert status == 2
    assert message in told
    assert "Traceback" not in errors


def test_help_teaches_with_examples(show: Run) -> None:
    status, output, _ = show("--help")
    words = " ".join(output.split())
    assert status == 0
    assert "tilewright machine show ahbm --yaml > mine.yaml" in words
    assert "--svg" in words
