"""Values beside their reference in float64, and the outcome of a program of one launch."""

from collections.abc import Callable, Mapping

import numpy as np

from tilewright.errors import BenchError
from tilewright.host import LaunchReport, RuntimeContext
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.contract import BenchOutcome
from tilewright.programs.inputs import Array
from tilewright.programs.latency import Path
from tilewright.units import ROW_TOLERANCES


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
    tolerance: float,
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
