"""What a shell is offered for the word that is being typed."""

from pathlib import Path

import pytest

from tilewright.cli.group import COMMANDS, list_commands
from tilewright.cli.main import main
from tilewright.machine import list_presets


def offered(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What bash gets for the last word of a line; the protocol is Typer's."""
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    return streams.out.split()


def test_commands_are_offered_by_their_first_letters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(list_commands())
    assert offered("tilewright ", capsys, monkeypatch)[: len(names)] == names
    assert offered("tilewright ma", capsys, monkeypatch) == ["machine"]
    machine = list(list_commands(COMMANDS / "machine"))
    assert offered("tilewright machine ", capsys, monkeypatch) == machine


@pytest.mark.parametrize(
    "line",
    [
        "machine show ", "machine check ", "run qkv_gemm --machine ", "probe --machine ",
        "attention run --machine ", "attention compare --machine ", "generate --machine ",
        "bench decode --machine ",
    ],
)  # fmt: skip
def test_machines_that_ship_are_offered(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(f"tilewright {line}", capsys, monkeypatch) == list(list_presets())
    small = offered(f"tilewright {line}ahbm-s", capsys, monkeypatch)
    assert small == ["ahbm-small"]


@pytest.mark.parametrize("line", ["run qkv", "list qkv"])
def test_ready_programs_are_offered(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(f"tilewright {line}", capsys, monkeypatch) == ["qkv_gemm"]


@pytest.mark.parametrize(
    "line", ["attention show ", "attention compile ", "attention run --flow ", "generate --flow "]
)
def test_ready_flows_are_offered(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = offered(f"tilewright {line}quest", capsys, monkeypatch)
    assert found == ["quest", "quest_group_sum", "quest_mean_query", "quest_mla"]


def test_options_and_their_choices_are_offered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered("tilewright run --ph", capsys, monkeypatch) == ["--phases"]
    choices = offered("tilewright run qkv_gemm --engine ", capsys, monkeypatch)
    assert choices == ["reference", "native"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user of bash has files; nothing is there yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    return tmp_path / "home"


def test_completion_is_installed_for_the_shell_that_runs(home: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--install-completion"])
    assert end.value.code == 0
    (script,) = (home / ".bash_completions").iterdir()
    assert "_TILEWRIGHT_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (home / ".bashrc").read_text()


def test_a_home_that_cannot_be_written_to_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.touch()
    assert main(["--install-completion"]) == 2
    assert "a home that can be written to" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 0
    assert f"_TILEWRIGHT_COMPLETE=complete_{shell}" in capsys.readouterr().out
