"""Our engines on the benchmark's loads give what the oracle and the peer give."""

from tests.kinds import every_engine
from tilewright.bench.engine import growth_figure
from tilewright.bench.peers import simpy_message
from tilewright.engine import EngineKind
from tilewright.records import GrowthRow
from tilewright.validation.engine_run import run_closed, run_open
from tilewright.validation.noc.flit import run_flits
from tilewright.validation.workload import MeshSpec, closed_loop, mesh_load


@every_engine
def test_the_open_loop_arrives_when_the_flit_oracle_says(kind: EngineKind) -> None:
    load = mesh_load(MeshSpec(4), 200, 0.7, seed=5)
    assert run_open(load, kind).delivered_ps == run_flits(load).delivered_ps


@every_engine
def test_finite_buffers_arrive_when_the_flit_oracle_says(kind: EngineKind) -> None:
    load = mesh_load(MeshSpec(4, buffer_flits=64, round_robin=True), 200, 0.9, seed=5)
    assert run_open(load, kind).delivered_ps == run_flits(load).delivered_ps


@every_engine
def test_the_closed_loop_arrives_when_the_peer_says(kind: EngineKind) -> None:
    loop = closed_loop(MeshSpec(4), steps=5, seed=5)
    run = run_closed(loop, kind)
    assert run.delivered_ps == simpy_message.run_closed(loop).delivered_ps
    assert len(run.delivered_ps) == 2 * sum(map(len, loop.programs))


def test_growth_is_the_cost_of_a_hop_at_the_larger_size() -> None:
    small = GrowthRow(nodes=64, hops=100, seconds=1.0)
    large = GrowthRow(nodes=1024, hops=400, seconds=6.0)
    assert growth_figure((small, large)) == 1.5
