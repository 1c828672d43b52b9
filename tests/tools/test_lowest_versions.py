import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "lowest_versions.py"
PROJECT = """
[build-system]
requires = ["builder>=1.1,<2"]

[project]
name = "ours"
dependencies = ["first>=2.10,<3"]

[project.optional-dependencies]
peers = ["second>=3.7.1,<4", "third==2.13.0"]
test = ["ours[peers]", "second>=3.10,<4", {last}]
"""


def run_on(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), str(project)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def written(folder: Path, last: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(PROJECT.format(last=last))
    return file


def test_what_builds_runs_and_tests_a_project_is_taken_at_the_lowest_version_all_allow(
    tmp_path: Path,
) -> None:
    found = run_on(written(tmp_path, '"last>=0.5,<1"'))
    assert found.returncode == 0
    assert found.stdout.split() == [
        "builder==1.1", "first==2.10", "second==3.10", "third==2.13.0", "last==0.5",
    ]  # fmt: skip


@pytest.mark.parametrize("last", ["last", "last>=1", "last<2", "last>1,<2", "last~=1.2"])
def test_a_dependency_without_both_bounds_is_refused(tmp_path: Path, last: str) -> None:
    found = run_on(written(tmp_path, f'"{last}"'))
    assert found.returncode == 1
    assert f"found '{last}', expected 'name>=low,<high'" in found.stderr


def test_every_dependency_of_this_project_has_both_bounds() -> None:
    found = run_on(ROOT / "pyproject.toml")
    assert (found.returncode, found.stderr) == (0, "")
    names = {line.partition("==")[0] for line in found.stdout.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(names) >= len(project["dependencies"]) + 15
    assert {"numpy", "pydantic", "pytest", "torch", "triton", "nanobind"} <= names
