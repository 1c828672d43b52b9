"""What a ready program is: its run hands back an outcome, with values beside their reference."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tilewright.errors import BenchError, RegistryError
from tilewright.host import LaunchReport, RuntimeContext
from tilewright.programs.bound import Bound, Path, Work, bound_of
from tilewright.programs.inputs import Array
from tilewright.programs.parameter import NO_FIT, BenchParameter, ProgramFit, parameters_of
from tilewright.units import ROW_TOLERANCES


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOutcome:
    """Errors are relative to the norm of a row; None where there were no values to check."""

    bound: Bound
    launches: tuple[LaunchReport, ...]  # the measured window, in the order of submission
    max_error: float | None
    tolerance: float | None
    notes: tuple[str, ...] = ()

    @property
    def values_ok(self) -> bool | None:
        """None: a run without values, which says nothing about them."""
        if self.max_error is None or self.tolerance is None:
            return None
        return self.max_error <= self.tolerance

    @property
    def latency_ps(self) -> int:
        """From the submission of the first launch to the completion of the last one."""
        start_ps = min(launch.submitted_ps for launch in self.launches)
        return max(launch.completed_ps for launch in self.launches) - start_ps


@dataclass(frozen=True, slots=True)
class BenchProgram:
    """``run(torch, **parameters)`` makes tensors, launches kernels and checks values."""

    name: str
    summary: str  # one line
    run: Callable[..., BenchOutcome]
    machine: str = "ahbm"  # the preset it is written for; others do
    fit: ProgramFit = NO_FIT  # which defaults may become smaller on a small machine

    @property
    def parameters(self) -> tuple[BenchParameter, ...]:
        """What may be set, in the order of the signature."""
        return parameters_of(self.run, where=self.name)


def build_programs(programs: Iterable[BenchProgram]) -> Mapping[str, BenchProgram]:
    """A read-only table by name; two programs of one name are refused."""
    table: dict[str, BenchProgram] = {}
    for program in programs:
        if program.name in table:
            found = f"two programs {program.name!r}"
            raise RegistryError("programs", found, "one owner", "rename one")
        table[program.name] = program
    return MappingProxyType(table)


def tolerance_of(dtype: str) -> float:
    """Return the tolerance of results that were computed in f32 and rounded to ``dtype`` once."""
    if dtype not in ROW_TOLERANCES:
        expected = f"one of {', '.join(ROW_TOLERANCES)}"
        raise BenchError("values", dtype, expected, "take another dtype")
    return ROW_TOLERANCES[dtype]


def row_error(found: Array, expected: Array) -> float:
    """Return the greatest error of an element, relative to the norm of its row (the last axis).

    A row of zeros counts with its absolute error. A value that is no number is infinitely wrong.

    >>> row_error(np.array([[3.0, 4.5]]), np.array([[3.0, 4.0]]))
    0.1
    """
    if found.shape != expected.shape:
        shapes = f"values of shape {found.shape}"
        raise BenchError("values", shapes, f"the reference's {expected.shape}", "correct one")
    wide = np.asarray(expected, np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    errors = np.abs(np.asarray(found, np.float64) - wide) / np.where(norms > 0, norms, 1.0)
    return float(np.max(np.nan_to_num(errors, nan=np.inf), initial=0.0))


def measured(
    torch: RuntimeContext,
    report: LaunchReport,
    work: Work,
    error: Callable[[], float],
    *,
    tolerance: float = ROW_TOLERANCES["f16"],
    path: Path | None = None,
    messages: Mapping[str, tuple[int, int]] | None = None,
    notes: tuple[str, ...] = (),
) -> BenchOutcome:
    """Return the outcome of a program of one launch, with its bound (see ``bound_of``).

    Without ``path`` every PE of the launch loads, computes and stores once. ``error`` is called
    only where there are values.
    """
    return BenchOutcome(
        bound=bound_of(torch.machine, work, path or Path(pes=report.pes), messages),
        launches=(report,),
        max_error=error() if torch.carries_data else None,
        tolerance=tolerance,
        notes=notes,
    )
