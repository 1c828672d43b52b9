"""What ``run`` can run: a ready program by its name, or a Python file that has ``run(torch)``."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from tilewright.benches.programs import PROGRAMS
from tilewright.benches.programs.contract import BenchProgram
from tilewright.benches.programs.parameter import BenchParameter, parameters_of
from tilewright.errors import BenchError, ProgramError, TilewrightError
from tilewright.language.source import add_place
from tilewright.machine.parse import DEFAULT_PRESET

__all__ = ("RunSource", "find_program", "find_source")

ENTRY = "run"
MODULE = "tilewright_program"


@dataclass(frozen=True, slots=True)
class RunSource:
    """A program that can be run any number of times, each time as if it had just been loaded."""

    name: str
    machine: str  # unless the user says another
    parameters: tuple[BenchParameter, ...]
    load: Callable[[], Callable[..., Any]]
    file: Path | None = None
    file_hash: str | None = None

    def call(self, torch: Any, values: dict[str, Any]) -> Any:
        """Run it; what fails in the user's own file is told by his line."""
        run = self.load()
        if self.file is None:
            return run(torch, **values)
        with _told_by_line(self.file), _beside(self.file):
            return run(torch, **values)


def find_source(text: str) -> RunSource:
    """By name, or by a path: that is, whatever ends in .py or has a separator."""
    if text.endswith(".py") or "/" in text:
        return _file_source(Path(text))
    program = find_program(text)
    entry = program.run
    return RunSource(program.name, program.machine, program.parameters, lambda: entry)


def find_program(name: str) -> BenchProgram:
    """A ready program by its name."""
    program = PROGRAMS.get(name)
    if program is None:
        near = get_close_matches(name, PROGRAMS, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "run: tilewright list"
        expected = "a ready program or a Python file (name.py)"
        raise BenchError("run", f"no program {name!r}", expected, fix)
    return program


def _file_source(file: Path) -> RunSource:
    try:
        content = file.read_bytes()
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror})"
        fix = "check the path and its permissions"
        raise BenchError(str(file), found, "a Python file with run(torch)", fix) from error

    def load() -> Callable[..., Any]:
        return _entry_of(file, content)

    parameters = parameters_of(load(), where=str(file))
    digest = sha256(content).hexdigest()
    return RunSource(str(file), DEFAULT_PRESET, parameters, load, file, digest)


def _entry_of(file: Path, content: bytes) -> Callable[..., Any]:
    module = ModuleType(MODULE)
    module.__file__ = str(file)
    with _told_by_line(file), _beside(file):
        sys.modules[MODULE] = module  # who looks for the module of a class finds it
        exec(compile(content, str(file), "exec"), vars(module))
    entry = getattr(module, ENTRY, None)
    if not callable(entry):
        found = "no function named run" if entry is None else f"run = {entry!r}"
        fix = "define it: what the command runs is run(torch)"
        raise BenchError(str(file), found, "a function run(torch)", fix)
    run: Callable[..., Any] = entry
    return run


@contextmanager
def _beside(file: Path) -> Iterator[None]:
    """Imports find what lies beside the file, as when Python itself runs it."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


@contextmanager
def _told_by_line(file: Path) -> Iterator[None]:
    """Errors say where in the user's file they come from, and show no line of ours."""
    try:
        yield
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}"
        raise ProgramError(where, f"a syntax error ({error.msg})", "Python", "correct it") from None
    except TilewrightError as error:
        place = _line_in(error, file)
        if place and str(file) not in error.where:
            add_place(error, place)
        raise
    except (Exception, SystemExit) as error:
        where = _line_in(error, file) or str(file)
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        found = f"{type(error).__name__}: {error}{notes}"
        fix = "correct the program"
        raise ProgramError(where, found, "a program that runs to its end", fix) from error


def _line_in(error: BaseException, file: Path) -> str:
    """The innermost line of the file that the error came through; empty if there is none."""
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        if frame.f_code.co_filename == str(file):
            place = f"{file}:{line} in {frame.f_code.co_name}"
    return place
