import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "size_table.py"


def run_on(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(root: Path, name: str, content: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def function_of(num_lines: int, *, docstring: str = "") -> str:
    return "def long():\n" + docstring + "    pass\n" * (num_lines - 1)


@pytest.mark.parametrize(
    ("content", "status", "verdict"),
    [
        ("x = 1\n" * 300, 0, "0 beyond"),
        ("x = 1\n" * 301, 0, "long        301 lines"),
        ("x = 1\n" * 501, 1, "too long    501 lines"),
        (function_of(40), 0, "0 beyond"),
        (function_of(41), 0, "src/a.py:1 long"),
        (function_of(61), 1, "too long     61 lines"),
        (function_of(40, docstring='    """One.\n\n    Two.\n    """\n'), 0, "0 beyond"),
    ],
)
def test_sizes_in_src_are_listed_and_refused_beyond_the_hard_limit(
    tmp_path: Path, content: str, status: int, verdict: str
) -> None:
    write(tmp_path, "src/a.py", content)
    finished = run_on(tmp_path)
    assert finished.returncode == status
    assert verdict in finished.stdout


@pytest.mark.parametrize("name", ["csrc/core.cpp", "tests/test_a.py"])
def test_outside_src_a_long_file_is_only_listed(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "\n" * 501)
    finished = run_on(tmp_path)
    assert finished.returncode == 0
    assert f"long        501 lines (guide 300)  {name}" in finished.stdout
