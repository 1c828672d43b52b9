"""A copy of the package with a part that a test changes, and programs that import it."""

import shutil
import subprocess
import sys
from pathlib import Path

import tilewright

IN_COPY = """
import sys
# an editable install finds the package by a hook, before any path is looked at
sys.meta_path = [each for each in sys.meta_path if not type(each).__module__.startswith("_edit")]
sys.path.insert(0, sys.argv.pop(1))
"""


def copy_package(directory: Path, part: str) -> Path:
    """Make a package in which one part is a copy and all else are links; return its folder."""
    source, package = Path(tilewright.__file__).parent, directory / "tilewright"
    package.mkdir()
    for each in source.iterdir():
        if each.name == part:
            shutil.copytree(each, package / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (package / each.name).symlink_to(each)
    return package


def output_of(directory: Path, program: str, *arguments: str) -> str:
    """Run a program that imports the package of ``directory``, and return what it prints."""
    command = (sys.executable, "-c", IN_COPY + program, str(directory), *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
