import json

from tilewright.records import (
    EngineBenchRecord,
    EngineRatios,
    EngineWorkloadRow,
    GrowthRow,
    canonical_json,
    installed_versions,
)


def test_the_engine_benchmark_has_the_fields_that_its_readers_rely_on() -> None:
    ratios = EngineRatios(
        native_open_loop=250.0,
        native_closed_loop=50.0,
        native_finite_buffers=60.0,
        reference_open_loop=9.0,
    )
    row = EngineWorkloadRow(
        workload="open_loop",
        implementation="native",
        seconds=0.5,
        hops=100,
        hops_per_s=200.0,
        events_per_hop=1.0,
        simulated_ps=1_000,
        digest="0" * 64,
    )
    record = EngineBenchRecord(
        versions=installed_versions(engine="reference, native"),
        seed=0,
        identical=True,
        ratios=ratios,
        growth_64_to_1024=1.1,
        growth=(GrowthRow(nodes=64, hops=1, seconds=0.1),),
        workloads=(row,),
        simpy_timeouts_per_s=1e6,
        invariant_cost=0.01,
    )
    document = json.loads(canonical_json(record))
    assert document["identical"] is True
    assert document["ratios"]["native_open_loop"] == 250.0
    assert document["growth_64_to_1024"] == 1.1
    assert EngineBenchRecord.model_validate_json(canonical_json(record)) == record
