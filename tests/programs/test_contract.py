"""The table of programs, and what an outcome says of itself."""

import pytest

from tilewright.errors import RegistryError
from tilewright.executor.run import Counters
from tilewright.host import LaunchReport, PeCoord
from tilewright.programs import PROGRAMS
from tilewright.programs.bound import Bound
from tilewright.programs.contract import (
    BenchOutcome,
    BenchProgram,
    build_programs,
)


def _report(submitted_ps: int, completed_ps: int) -> LaunchReport:
    return LaunchReport(
        name="kernel",
        kernel="kernel",
        grid=(1,),
        num_programs=1,
        pes=(PeCoord(0, 0, 0),),
        submitted_ps=submitted_ps,
        first_start_ps=submitted_ps,
        last_start_ps=submitted_ps,
        last_end_ps=completed_ps,
        completed_ps=completed_ps,
        last_pe=PeCoord(0, 0, 0),
        last_owner=0,
        counters=Counters(),
    )


def _outcome(max_error: float | None = None, tolerance: float | None = None) -> BenchOutcome:
    bound = Bound(5, "HBM", {"HBM": 5})
    launches = (_report(10, 50), _report(20, 40))
    return BenchOutcome(bound=bound, launches=launches, max_error=max_error, tolerance=tolerance)


def test_two_programs_of_one_name_are_refused() -> None:
    program = BenchProgram("copy", "moves bytes", _outcome)
    with pytest.raises(RegistryError, match="two programs 'copy'"):
        build_programs((program, program))


def test_values_are_right_up_to_the_tolerance_and_no_further() -> None:
    assert _outcome(2e-3, 2e-3).values_ok is True
    assert _outcome(2.1e-3, 2e-3).values_ok is False
    assert _outcome(float("nan"), 2e-3).values_ok is False
    assert _outcome().values_ok is None


def test_the_latency_is_from_the_first_submission_to_the_last_completion() -> None:
    assert _outcome().latency_ps == 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_one_line_summary_and_helpful_parameters(name: str) -> None:
    program = PROGRAMS[name]
    assert program.name == name
    assert program.summary
    assert "\n" not in program.summary
    assert all(parameter.help for parameter in program.parameters)
