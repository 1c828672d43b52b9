"""What a shell is offered for the word that is being typed."""

import pytest

from tilewright.cli.commands import COMMANDS, Group
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
    assert offered("tilewright ", capsys, monkeypatch)[: len(COMMANDS)] == list(COMMANDS)
    assert offered("tilewright ma", capsys, monkeypatch) == ["machine"]
    machine = COMMANDS["machine"]
    assert isinstance(machine, Group)
    assert offered("tilewright machine ", capsys, monkeypatch) == list(machine.commands)


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 0
    assert f"_TILEWRIGHT_COMPLETE=complete_{shell}" in capsys.readouterr().out
