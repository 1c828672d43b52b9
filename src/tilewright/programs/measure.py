"""From launches that are over to the outcome of a program."""

from collections.abc import Callable, Sequence

from tilewright.host import LaunchReport, RuntimeContext
from tilewright.programs.contract import BenchOutcome, Bound


def measured(
    torch: RuntimeContext,
    launches: Sequence[LaunchReport],
    bound: Bound,
    *,
    error: Callable[[], float],
    tolerance: float,
    notes: tuple[str, ...] = (),
) -> BenchOutcome:
    """``error`` is asked only where there are values."""
    return BenchOutcome(
        bound=bound,
        launches=tuple(launches),
        max_error=error() if torch.carries_data else None,
        tolerance=tolerance,
        notes=notes,
    )
