"""The demonstration: the default machine, what its distances cost, and the engines that say so."""

from collections.abc import Callable
from dataclasses import asdict

from tilewright.benches.engine_speed import (
    compare_engines,
    engine_kinds,
    engine_workloads,
    is_identical,
)
from tilewright.benches.probe import run_probe
from tilewright.machine.build import build_machine
from tilewright.machine.parse import DEFAULT_PRESET, parse_machine
from tilewright.machine.totals import totals_of
from tilewright.records import DemoRecord, MachineFigures, installed_versions

__all__ = ("CASES", "LARGE_BYTES", "SMALL_BYTES", "run_demo")

# From near to far, then two crowds; few enough to take seconds on the Python engine too.
CASES = (
    "pe_local",
    "pe_same_cube",
    "pe_next_cube",
    "pe_far_cube",
    "pe_other_sip",
    "host_write_near",
    "hot_8",
    "east_port_8",
)
SMALL_BYTES = 256  # latency decides
LARGE_BYTES = 64 * 2**10  # bandwidth decides


def run_demo(*, progress: Callable[[str], None], seed: int = 1) -> DemoRecord:
    """Build and probe the default machine, then run the engines' loads on every engine."""
    machine = build_machine(parse_machine(DEFAULT_PRESET))
    progress(f"probe of {machine.spec.name}: {len(CASES)} cases at two sizes")
    probe = run_probe(machine, names=CASES, sizes=(SMALL_BYTES, LARGE_BYTES))
    rows = compare_engines(engine_workloads(seed), progress=progress, rounds=1)
    return DemoRecord(
        versions=installed_versions(engine=" and ".join(kind.value for kind in engine_kinds())),
        figures=MachineFigures(**asdict(totals_of(machine))),
        probe=probe,
        seed=seed,
        identical=is_identical(rows),
        workloads=rows,
    )
