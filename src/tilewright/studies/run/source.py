"""What ``run`` can run: a ready program by its name, or a Python file that has ``run(torch)``."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilewright.errors import BenchError, meant
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.detection import imports_kernbench
from tilewright.interop.program_file import ProgramFile
from tilewright.machine.build import Machine
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.programs import PROGRAMS
from tilewright.programs.contract import BenchProgram
from tilewright.programs.parameter import NO_FIT, BenchParameter, ProgramFit, parameters_of
from tilewright.records import read_file

ENTRY = "run"
ENTRY_SEPARATOR = "::"  # FILE::NAME is one bench of several

BuildContext = Callable[[Machine], RuntimeContext]
"""Makes a context like that of the run, for a program that describes its own machine."""

Entry = Callable[..., Any]
Call = Callable[[RuntimeContext, dict[str, Any], BuildContext], Any]


@dataclass(frozen=True, slots=True)
class RunSource:
    """A program that can be run any number of times, each time as if it had just been loaded."""

    name: str
    machine: str  # unless the user says another
    parameters: tuple[BenchParameter, ...]
    call: Call
    """Runs it once; what fails in the user's own file is told by his line."""
    file: Path | None = None
    file_hash: str | None = None
    fit: ProgramFit = NO_FIT


def find_source(text: str) -> RunSource:
    """By name, or by a path: that is, whatever ends in .py or has a separator."""
    path, _, bench = text.partition(ENTRY_SEPARATOR)
    if path.endswith(".py") or "/" in path:
        return _file_source(Path(path), bench or None)
    program = find_program(text)
    entry = program.run
    return RunSource(
        program.name, program.machine, program.parameters,
        lambda torch, values, _build: entry(torch, **values), fit=program.fit,
    )  # fmt: skip


def find_program(name: str) -> BenchProgram:
    """A ready program by its name."""
    program = PROGRAMS.get(name)
    if program is None:
        fix = meant(name, PROGRAMS, "run: tilewright list")
        expected = "a ready program or a Python file (name.py)"
        raise BenchError("run", f"no program {name!r}", expected, fix)
    return program


def _file_source(file: Path, bench: str | None) -> RunSource:
    content = read_file(file, "a Python file with run(torch)", BenchError)
    name = str(file) if bench is None else f"{file}{ENTRY_SEPARATOR}{bench}"
    make = _kernbench_call if imports_kernbench(file, content) else _own_call
    entry, call = make(file, content, bench)
    parameters = parameters_of(entry, where=name)
    return RunSource(name, DEFAULT_PRESET, parameters, call, file, sha256(content).hexdigest())


def _own_call(file: Path, content: bytes, bench: str | None) -> tuple[Entry, Call]:
    if bench is not None:
        found, fix = f"the bench {bench!r}", "leave the name out"
        raise BenchError(str(file), found, "a file that imports kernbench", fix)

    def call(torch: RuntimeContext, values: dict[str, Any], build: BuildContext) -> Any:
        del build
        program = ProgramFile(file, content)
        run = _entry_of(program)
        with program.running():
            return run(torch, **values)

    return _entry_of(ProgramFile(file, content)), call


def _kernbench_call(file: Path, content: bytes, bench: str | None) -> tuple[Entry, Call]:
    from tilewright.interop.kernbench.loading import (  # noqa: PLC0415  # for such files alone
        KernbenchProgram,
    )

    def call(torch: RuntimeContext, values: dict[str, Any], build: BuildContext) -> Any:
        KernbenchProgram(file, content, build).run(torch, values, bench)

    return KernbenchProgram(file, content).entry(bench), call


def _entry_of(program: ProgramFile) -> Entry:
    entry = getattr(program.load(), ENTRY, None)
    if not callable(entry):
        found = "no function named run" if entry is None else f"run = {entry!r}"
        fix = "define it: what the command runs is run(torch)"
        raise BenchError(str(program.file), found, "a function run(torch)", fix)
    run: Entry = entry
    return run
