"""The demonstration: today the event engines on the three loads that decide their use."""

from collections.abc import Callable

from tilewright.benches.engine_speed import (
    compare_engines,
    engine_kinds,
    engine_workloads,
    is_identical,
)
from tilewright.records import DemoRecord, installed_versions

__all__ = ("run_demo",)


def run_demo(*, progress: Callable[[str], None], seed: int = 1) -> DemoRecord:
    """Run every load on every engine of this installation, and compare the results."""
    rows = compare_engines(engine_workloads(seed), progress=progress, rounds=2)
    return DemoRecord(
        versions=installed_versions(engine=" and ".join(kind.value for kind in engine_kinds())),
        seed=seed,
        identical=is_identical(rows),
        workloads=rows,
    )
