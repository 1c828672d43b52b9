"""What ``machine check`` accepts runs, whatever a file says; all else is refused with its place."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.machine.drawn import drawn_machines
from tests.programs.small import SMALL
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.errors import SpecError
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.check import check_machine_file
from tilewright.programs import PROGRAMS
from tilewright.programs.probe.run import run_probe
from tilewright.records import MachineCheckRecord, RunRecord
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source

MOST_PES = 64
EXAMPLES = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "all" else 60


def run_ready(name: str, machine: Machine, **sizes: Any) -> RunRecord:
    """Run a ready program once; like defaults, its sizes may become smaller."""
    source = find_source(name)
    parameters = {each.name: each.default for each in source.parameters} | sizes
    kind = resolve_engine(AUTO, native_built=native_built())
    request = RunRequest(
        source, parameters, machine, "drawn", engine=kind, free=frozenset(parameters)
    )
    return run_program(request, RunWatch(is_once=True))


def verdict_on(preset: str, changes: tuple[str, ...]) -> MachineCheckRecord | SpecError:
    try:
        return check_machine_file(preset, changes)
    except SpecError as error:
        return error


@pytest.mark.timeout(3600)  # `make test-all` runs many more examples
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(drawn_machines(), st.sampled_from(sorted(PROGRAMS)))
def test_a_machine_that_the_check_accepts_runs(
    case: tuple[str, tuple[str, ...]], program: str
) -> None:
    preset, changes = case
    verdict = verdict_on(preset, changes)
    if isinstance(verdict, SpecError):
        assert verdict.where.startswith(("--set ", f"preset {preset}")), verdict
        return
    assume(verdict.num_pes <= MOST_PES)
    machine = build_machine(parse_machine(preset, changes))
    assert run_probe(machine, names=["pe_local"], sizes=[64]).ok
    assert run_ready("gemm_single_pe", machine, m=8, k=16, n=8).ok
    assert run_ready("allreduce", machine, bytes=64 * machine.grid.num_sips).ok
    assert run_ready(program, machine, **SMALL[program]).ok
