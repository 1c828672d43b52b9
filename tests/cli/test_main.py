import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.cli.main import main
from tilewright.records import installed_version


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tilewright {installed_version()}\n"


def test_the_help_teaches_json_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Every command takes --json" in text
    assert "Exit status: 0" in text


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
