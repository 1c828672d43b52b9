import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupts import interruptible_children
from tilewright.cli.main import main
from tilewright.records import installed_version

INTERRUPT = "signal.raise_signal(signal.SIGINT)"
INTERRUPTED_IMPORT = """
import importlib, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "rich", "typer"):
            INTERRUPT

sys.meta_path.insert(0, CtrlC())
module = importlib.import_module(sys.argv.pop())
sys.exit(module.main())
"""


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tilewright {installed_version()}\n"


def test_the_help_teaches_json_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Every command takes --json" in text
    assert "Exit status: 0" in text


def test_without_arguments_there_is_the_help_alone_and_status_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2  # nothing was asked for, so nothing holds
    streams = capsys.readouterr()
    assert "Usage: tilewright" in streams.out
    assert streams.err == ""


@pytest.mark.parametrize("start", ["tilewright.__main__", "tilewright.cli.main"])
@pytest.mark.parametrize("interrupt", [INTERRUPT, f"exec('import signal; {INTERRUPT}')"])
def test_ctrl_c_while_libraries_load_ends_with_130_and_one_line(start: str, interrupt: str) -> None:
    text = INTERRUPTED_IMPORT.replace("INTERRUPT", interrupt)
    command = (sys.executable, "-c", text, start)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 130
    assert run.stdout == ""
    assert run.stderr == "interrupted; nothing half-done is left\n"


LOST_INTERRUPT = """
import signal

class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def run(torch):
    Lost()
    while True:
        pass
"""


def test_ctrl_c_in_a_finalizer_ends_a_run_with_130(tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text(LOST_INTERRUPT, encoding="utf-8")
    command = (sys.executable, "-m", "tilewright", "run", str(program), "--machine", "ahbm-small")
    with interruptible_children():
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert run.returncode == 130
    assert "Exception ignored" not in run.stderr


def test_other_ignored_exceptions_go_to_the_hook_that_was_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError("in a finalizer")

    def run(arguments: list[str]) -> int:
        del arguments
        Broken()
        return 0

    heard: list[object] = []
    monkeypatch.setattr("tilewright.cli.app.run", run)
    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: heard.append(ignored.exc_type))
    hook = sys.unraisablehook
    assert main([]) == 0
    assert heard == [ValueError]
    assert sys.unraisablehook is hook


def test_a_command_that_does_not_exist_ends_with_status_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["no-such-command"]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "No such command 'no-such-command'" in streams.err
    assert "run: tilewright --help" in streams.err


def test_the_installed_script_passes_the_exit_status_on() -> None:
    script = Path(sys.executable).with_name("tilewright")
    assert subprocess.run([script, "--version"], capture_output=True, check=False).returncode == 0
    assert subprocess.run([script, "nothing"], capture_output=True, check=False).returncode == 2
