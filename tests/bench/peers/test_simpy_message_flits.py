import pytest

from tilewright.bench.peers.simpy_message import run_flits
from tilewright.errors import SpecError
from tilewright.validation.workload import LinkSpec, MeshSpec, Message, NetworkLoad, mesh_load


def test_a_flit_costs_four_events_on_a_hop_and_a_packet_two() -> None:
    link = LinkSpec("link", flit_ps=1, latency_ps=1)
    run = run_flits(NetworkLoad((link,), (Message(0, 0, (0,), (0,), flits=10),)))
    assert run.num_events == 10 * 4 + 2 + 1  # and one that starts the worker


def test_links_that_arbitrate_are_refused() -> None:
    with pytest.raises(SpecError, match="a link that arbitrates"):
        run_flits(mesh_load(MeshSpec(4, buffer_flits=64), 1, 0.5, seed=1))
