from dataclasses import asdict

import pytest

from tilewright.benches.engine_speed import EngineWorkload
from tilewright.benches.workload import MeshSpec, mesh_load
from tilewright.engine import native_built
from tilewright.machine.build import build_machine, machine_hash
from tilewright.machine.parse import parse_machine
from tilewright.machine.totals import totals_of
from tilewright.records import DemoRecord, canonical_json
from tilewright.studies import demo
from tilewright.studies.demo import CASES, LARGE_BYTES, SMALL_BYTES, run_demo


def tiny_loads(seed: int) -> tuple[EngineWorkload, ...]:
    return (EngineWorkload("tiny", mesh_load(MeshSpec(4), 50, 0.5, seed), "a few messages"),)


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def record(told: list[str]) -> DemoRecord:
    with pytest.MonkeyPatch.context() as patch:  # the loads of the real one take seconds
        patch.setattr(demo, "engine_workloads", tiny_loads)
        return run_demo(progress=told.append, seed=3)


def test_the_demo_probes_every_case_at_both_sizes_and_all_checks_hold(record: DemoRecord) -> None:
    rows = {(row.case, row.bytes) for row in record.probe.cases}
    assert rows == {(case, size) for case in CASES for size in (SMALL_BYTES, LARGE_BYTES)}
    assert len(record.probe.cases) == len(rows)
    assert record.probe.ok


def test_the_demo_tells_the_figures_of_the_machine_that_it_probes(record: DemoRecord) -> None:
    machine = build_machine(parse_machine("ahbm"))
    assert record.probe.machine_hash == machine_hash(machine.spec)
    assert record.figures.model_dump() == asdict(totals_of(machine))


def test_the_demo_runs_each_load_on_every_engine_with_its_seed(record: DemoRecord) -> None:
    engines = [row.implementation for row in record.workloads]
    assert engines == (["reference", "native"] if native_built() else ["reference"])
    assert (record.seed, record.identical) == (3, True)
    assert record.workloads[0].hops == tiny_loads(3)[0].load.num_hops


def test_the_demo_says_what_it_is_doing_before_it_takes_time(
    record: DemoRecord, told: list[str]
) -> None:
    assert told == [
        f"probe of {record.probe.machine}: 8 cases at two sizes",
        "tiny: a few messages",
    ]


def test_the_record_of_the_demo_reads_back_as_it_was(record: DemoRecord) -> None:
    assert DemoRecord.model_validate_json(canonical_json(record)) == record
