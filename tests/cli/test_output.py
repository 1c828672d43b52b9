"""Streams whose other end is gone, full or was never there."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.cli.main import main
from tilewright.cli.output import note
from tilewright.records import RunRecord, read_record, write_record

COMMAND = (sys.executable, "-m", "tilewright")
FULL = Path("/dev/full")
LINES = [
    (("nosuch", "--json"), 2),
    (("--version",), 0),
    (("--help",), 0),
    ((), 2),
]

RESULT = """
import sys
import typer
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.shell import run_command
from tilewright.records import Document

class Answer(Document):
    answer: int

app = typer.Typer()

@app.command()
def disproves(_json: JsonOption = False) -> Outcome:
    return Outcome(Answer(answer=0), "it does not hold", passed=False)

sys.exit(run_command(typer.main.get_command(app), sys.argv[1:]))
"""
WAYS = [((*COMMAND, *line), status) for line, status in LINES]
WAYS += [((sys.executable, "-c", RESULT, *option), 1) for option in ((), ("--json",))]


def run_into_closed_pipe(command: tuple[str, ...], *, errors_too: bool) -> tuple[int, bytes]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        stderr = writer if errors_too else subprocess.PIPE
        run = subprocess.run(command, stdout=writer, stderr=stderr, check=False)
    finally:
        os.close(writer)
    return run.returncode, run.stderr or b""


@pytest.mark.parametrize("errors_too", [False, True])
@pytest.mark.parametrize(("command", "status"), WAYS)
def test_a_reader_that_left_changes_neither_the_status_nor_the_messages(
    command: tuple[str, ...], status: int, errors_too: bool
) -> None:
    assert run_into_closed_pipe(command, errors_too=errors_too) == (status, b"")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", [command for command, _ in WAYS])
def test_output_that_cannot_be_written_is_one_line_and_status_2(command: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == (
        "error: found standard output that cannot be written (No space left on device)\n"
    )


def test_a_closed_standard_output_is_one_line_and_status_2() -> None:
    command = ("sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "--version")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == "error: found standard output that cannot be written (it is closed)\n"


def test_without_standard_error_a_note_goes_nowhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    note("working")
    assert capsys.readouterr().out == ""


OBEYED = "\x1b[2J\x1b]0;title\x07\u202e[bold]x[/bold]\x9b"
SHOWN = r"\x1b[2J\x1b]0;title\x07\u202e[bold]x[/bold]\x9b"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_text_of_a_record_does_not_command_the_terminal(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
) -> None:
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    run = ("run", "gemm_single_pe", "--machine", "ahbm-small", "--once", "--record", str(ours))
    assert main(list(run)) == 0
    record = read_record(ours, RunRecord)
    what = record.what.model_copy(update={"program": OBEYED})
    write_record(theirs, record.model_copy(update={"what": what, "bottleneck": OBEYED}))
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    for command in (["explain", str(theirs)], ["compare", str(ours), str(theirs)]):
        capsys.readouterr()
        assert main(command) == 0
        text = capsys.readouterr().out
        assert "\x1b[2J" not in text
        assert not {"\x07", "\u202e", "\x9b"} & set(text)
        assert SHOWN.replace(r"\x07", "") in text  # which Rich leaves out


def test_a_note_does_not_command_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    note(f"of {OBEYED}\nand more")
    assert stream.getvalue() == f"of {SHOWN}\nand more\n"
