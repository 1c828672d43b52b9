"""A program run from Python, as ``tilewright run`` does it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.engine import AUTO, Auto, EngineKind, native_built, resolve_engine
from tilewright.engine.limit import Limits
from tilewright.errors import UsageError
from tilewright.machine import Machine, load_machine
from tilewright.programs.parameter import ParameterValue, parse_parameters
from tilewright.records import RunRecord
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source

BUILT = "of the caller"  # the source of a machine that was built before


def run(
    program: str | Path,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    machine: str | Path | Machine | None = None,
    overrides: Sequence[str] = (),
    device: str = "all",
    seed: int = 0,
    engine: EngineKind | Auto = AUTO,
    data: bool = True,
    sanitize: bool = False,
    limits: Limits | None = None,
    once: bool = False,
    phases: int | None = None,
) -> RunRecord:
    """Run a ready program, or a Python file with ``run(torch)``, and return its record.

    The record is that of ``tilewright run --json``: latency, bound, breakdown, whether values are
    right, and what the machine is. ``machine`` is a preset, a file or a built machine; without it
    the program's own is taken. ``once`` and ``phases`` are the options of the command.

    >>> record = run("gemm_single_pe", {"k": 64}, machine="ahbm-small", once=True)
    >>> record.ok, record.parameters["k"]
    (True, 64)
    """
    source = find_source(str(program))
    given = {name: str(value) for name, value in (parameters or {}).items()}
    values = parse_parameters(source.parameters, given, where=source.name)
    named = source.machine if machine is None else machine
    built = _built(named, overrides)
    request = RunRequest(
        source,
        values,
        built,
        BUILT if named is built else str(named),
        tuple(overrides),
        device,
        seed,
        resolve_engine(engine, native_built=native_built()),
        data,
        sanitize,
        frozenset(values.keys() - given.keys()),
        limits or Limits(),
        is_own_machine=named is built,
    )
    return run_program(request, RunWatch(is_once=once, phases=phases))


def _built(machine: str | Path | Machine, overrides: Sequence[str]) -> Machine:
    """Return the machine, which may be there already."""
    if not isinstance(machine, Machine):
        return load_machine(machine, overrides)
    if overrides:
        fix = "give them to load_machine, which builds it"
        raise UsageError("run", "overrides of a machine that is built", "a preset or a file", fix)
    return machine
