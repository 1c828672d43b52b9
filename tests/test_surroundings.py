"""Tests that notice how they were started pass in surroundings that hinder them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupts import with_interrupt_handler

ROOT = Path(__file__).parents[1]
TERMINALS = {"COLUMNS": "30", "FORCE_COLOR": "1", "GITHUB_ACTIONS": "true", "TERMINAL_WIDTH": "30"}
NOTICE = (  # a signal, a temporary folder, a terminal's width or colours, a home
    "tests/cli/command/test_run_process.py::test_ctrl_c_in_the_middle_of_a_run_leaves_a_record_and_ends_with_130",
    "tests/cli/command/test_generate.py::test_the_text_is_streamed_and_then_the_figures_follow",
    "tests/cli/test_shell.py::test_every_command_shows_its_json_option_in_its_help",
    "tests/records/test_special_file.py::test_a_socket_is_refused_and_stays",
    "tests/test_processes.py",
)


@pytest.mark.timeout(180)
def test_in_the_background_without_a_terminal_a_home_or_the_usual_folder_all_is_the_same(
    tmp_path: Path,
) -> None:
    other = tmp_path / ("another disk, " * 8)  # a long path with spaces
    other.mkdir()
    homeless = {"HOME": "/dev/null/home", "TMPDIR": str(other)}  # no user can make that home
    pytest_alone = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    with (
        with_interrupt_handler(signal.SIG_IGN),
        subprocess.Popen(
            [*pytest_alone, "-q", *NOTICE],
            cwd=ROOT,
            env=os.environ | homeless | TERMINALS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # without a terminal
        ) as process,
    ):
        output, _ = process.communicate(timeout=170)
    assert process.returncode == 0, output
    assert " passed" in output
