"""Builds a wheel and installs it into a new environment, with and without a C++ compiler."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IGNORED = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "*.so", "*.pyd")
HAS_COMPILER = any(map(shutil.which, ("c++", "g++", "clang++")))
BUILD_VARIABLES = ("CC", "CXX", "CMAKE_ARGS", "SKBUILD_CMAKE_ARGS", "TILEWRIGHT_REQUIRE_CORE")
CORE = "tilewright/native/_core."
PRINT_START_LINE = """
from importlib.util import find_spec
from tilewright.cli.startup import engine_line
native_built = find_spec("tilewright.native._core") is not None
print(engine_line("native" if native_built else "reference", native_built))
"""

pytestmark = pytest.mark.timeout(300)

IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "all"


@dataclass(frozen=True, slots=True)
class Install:
    """A new environment that holds the project."""

    programs: Path

    def run(self, program: str, *arguments: str) -> str:
        return output_of([str(self.programs / program), *arguments], os.environ)


def output_of(command: list[str], environment: Mapping[str, str]) -> str:
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def copy_of_sources(directory: Path) -> Path:
    """The project without what builds and tools left in it."""
    return Path(shutil.copytree(ROOT, directory / "sources", ignore=IGNORED))


def environment_with_path(path: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in BUILD_VARIABLES}
    return kept | {"PATH": path}


def environment_without_compiler(directory: Path) -> dict[str, str]:
    """An empty search path: CMake and Ninja come from their Python packages."""
    empty = directory / "empty"
    empty.mkdir()
    return environment_with_path(str(empty))


def build_wheel(sources: Path, environment: Mapping[str, str]) -> tuple[Path, str]:
    """The wheel, and what its build printed."""
    wheels = sources.parent / "wheels"
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    log = output_of([*command, "--verbose", "-w", str(wheels), str(sources)], environment)
    return next(wheels.glob("*.whl")), log


def install(wheel: Path) -> Install:
    venv.create(wheel.parent / "environment", with_pip=False)
    programs = wheel.parent / "environment" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python")]
    output_of([*pip, "install", "--quiet", str(wheel)], os.environ)
    return Install(programs)


def compiled_cores(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if name.startswith(CORE)]


def test_without_a_compiler_the_install_works_and_says_that_the_python_engine_runs(
    tmp_path: Path,
) -> None:
    wheel, log = build_wheel(copy_of_sources(tmp_path), environment_without_compiler(tmp_path))
    assert "CMAKE_CXX_COMPILER" in log, "the build did not even look for a compiler"
    project = install(wheel)
    assert project.run("tilewright", "--version").startswith("tilewright 0.")
    assert "reference (pure Python: this install has no compiled core" in project.run(
        "python", "-c", PRINT_START_LINE
    )


@pytest.mark.skipif(not IS_THOROUGH, reason="make installs with a compiled core; see make test-all")
@pytest.mark.skipif(not HAS_COMPILER, reason="this machine has no C++ compiler")
def test_with_a_compiler_the_install_has_the_native_core(tmp_path: Path) -> None:
    # `make` compiles for speed, LTO included; here the question is if a core gets into the wheel
    unoptimised = {"SKBUILD_CMAKE_BUILD_TYPE": "Debug"}
    environment = environment_with_path(os.environ["PATH"]) | unoptimised
    wheel, _ = build_wheel(copy_of_sources(tmp_path), environment)
    project = install(wheel)
    assert project.run("python", "-c", PRINT_START_LINE) == "engine: native (compiled core)\n"


def test_a_wheel_has_the_templates_of_pages_and_no_benchmarks(tmp_path: Path) -> None:
    templates = Path("tilewright/report/templates")
    wheel, _ = build_wheel(copy_of_sources(tmp_path), environment_without_compiler(tmp_path))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    shipped = {name for name in names if Path(name).parent == templates}
    assert shipped == {str(templates / path.name) for path in (ROOT / "src" / templates).iterdir()}
    assert len(shipped) > 0
    assert not [name for name in names if name.startswith("tilewright/bench/")]


def test_an_install_that_requires_the_core_fails_without_a_compiler(tmp_path: Path) -> None:
    environment = environment_without_compiler(tmp_path) | {"TILEWRIGHT_REQUIRE_CORE": "1"}
    with pytest.raises(AssertionError, match="CMAKE_CXX_COMPILER"):
        build_wheel(copy_of_sources(tmp_path), environment)


def test_a_core_left_in_the_tree_is_not_shipped_when_nothing_was_compiled(tmp_path: Path) -> None:
    sources = copy_of_sources(tmp_path)
    (sources / "src" / f"{CORE}abi3.so").write_bytes(b"from another build")
    wheel, _ = build_wheel(sources, environment_without_compiler(tmp_path))
    assert compiled_cores(wheel) == []
