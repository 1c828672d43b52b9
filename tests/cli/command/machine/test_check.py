"""``tilewright machine check``: verdict, warnings, all mistakes, and the status it ends with."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = main(["machine", "check", *arguments])
        output, errors = capsys.readouterr()
        return status, output, errors

    return run_and_capture


def test_without_a_name_the_default_machine_is_checked(check: Run) -> None:
    status, output, errors = check()
    assert (status, errors) == (0, "")
    assert output == "ahbm: a valid machine of 256 PEs\nno warnings\n"


def test_a_file_is_checked_with_its_overrides(check: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: ahbm-small\nname: mine [small]\n")
    status, output, _ = check(str(file), "--set", "sip.rows=1", "--set", "pe.gemm.rows=8")
    assert status == 0
    assert output.startswith("mine [small]: a valid machine of 8 PEs\n")


def test_a_warning_is_told_and_is_no_failure(check: Run) -> None:
    status, output, _ = check("ahbm-small", "--set", "fabric.links=2")
    assert status == 0
    words = " ".join(output.split())
    assert "warning: --set fabric.links: has no effect, since there is one SIP" in words
    assert "no warnings" not in output


def test_the_document_of_a_valid_machine_has_its_hash_and_warnings(check: Run) -> None:
    status, output, _ = check("ahbm-small", "--json", "--set", "fabric.links=2")
    document = json.loads(output)
    assert status == 0
    assert (document["kind"], document["machine"]) == ("machine_check", "ahbm-small")
    assert (document["source"], document["overrides"]) == ("ahbm-small", ["fabric.links=2"])
    assert document["num_pes"] == 16
    assert len(document["machine_hash"]) == 64
    assert len(document["warnings"]) == 1


def test_one_mistake_is_told_with_file_line_and_remedy(check: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ncube:\n  hbm:\n    bnaks: 8\n")
    status, output, errors = check(str(file))
    assert (status, output) == (2, "")
    assert f"error: {file} line 4: cube.hbm.bnaks" in errors
    assert "did you mean 'banks'?" in errors


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_all_mistakes_are_listed(check: Run, tmp_path: Path, flags: tuple[str, ...]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("nmae: mine\nsip: {count: 0}\ncube: {pes: x}\n")
    status, output, errors = check(str(file), *flags)
    told = json.loads(output)["error"]["found"] if flags else errors
    assert status == 2
    assert "3 mistakes:" in told
    places = [told.index(f"line {line}: {path}") for line, path in enumerate(PATHS, 1)]
    assert places == sorted(places)


PATHS = ("nmae", "sip.count", "cube.pes")


def test_as_a_document_each_mistake_has_its_parts(check: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("sip: {count: 0}\ncube: {pes: x}\n")
    status, output, _ = check(str(file), "--json")
    document = json.loads(output)
    assert (status, document["ok"]) == (2, False)
    assert document["problems"] == [
        {
            "type": "SpecError",
            "where": f"{file} line 1: sip.count",
            "found": "0",
            "expected": "at least 1",
            "fix": "raise it",
        },
        {
            "type": "SpecError",
            "where": f"{file} line 2: cube.pes",
            "found": "'x'",
            "expected": "a whole number",
            "fix": "write it in digits, without quotes",
        },
    ]


@pytest.mark.parametrize("text", ["sip: {count: 0}", "sip: [", "", "extends: no.yaml"])
def test_as_a_document_a_single_mistake_is_in_the_list_too(
    check: Run, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    status, output, _ = check(str(file), "--json")
    document = json.loads(output)
    assert status == 2
    [problem] = document["problems"]
    for part in ("where", "found", "expected", "fix"):
        assert problem[part] == document["error"][part]


def test_what_only_building_shows_is_wrong_input_too(check: Run) -> None:
    status, _, errors = check("ahbm", "--set", "cube.sram.capacity_bytes=64 GiB")
    assert status == 2
    assert "error: --set cube.sram.capacity_bytes" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ahbn",), "did you mean 'ahbm'?"),
        (("./no.yaml",), "a file that cannot be read (No such file or directory)"),
        (("ahbm", "--set", "nonsense"), "PATH=VALUE"),
        (("ahbm", "--set", "cube.hbm.x=1"), "error: --set cube.hbm.x"),
        (("ahbm", "extra"), "extra"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_to_do(
    check: Run, arguments: tuple[str, ...], message: str
) -> None:
    status, output, errors = check(*arguments)
    assert (status, output) == (2, "")
    assert message in errors
    assert "Traceback" not in errors
