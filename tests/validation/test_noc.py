"""A mesh on paper: idle paths, and buffers so large that credits never matter."""

import pytest

from tests.kinds import every_engine
from tests.loads import Transfer, TransferLoad, load_of, run_load
from tilewright.engine import EngineKind, EngineSpec, ServerSpec, build_engine
from tilewright.errors import EngineError
from tilewright.validation.workload import Mesh, MeshSpec, mesh_load

FLITS = 16


@every_engine
@pytest.mark.parametrize(
    ("mesh", "corner_ps"),
    [
        (MeshSpec(4, unit_ps=1, slow_units=(1, 3)), 39),
        (MeshSpec(8, unit_ps=1, slow_units=(1, 3)), 71),
        (MeshSpec(8, unit_ps=1), 104),
    ],
)
def test_an_idle_path_between_any_two_nodes_costs_its_closed_form(
    kind: EngineKind, mesh: MeshSpec, corner_ps: int
) -> None:
    network = Mesh(mesh)
    nodes = range(mesh.num_nodes)
    routes = [network.route(one, other) for one in nodes for other in nodes if one != other]
    apart_ps = 1_000  # longer than any path takes
    transfers = [
        Transfer(apart_ps * index, route, (0,) * len(route), FLITS)
        for index, route in enumerate(routes)
    ]
    found = run_load(TransferLoad(network.links, tuple(transfers), FLITS), kind).ends_ps
    links = network.links
    for index, route in enumerate(routes):
        head_ps = sum(links[link].flit_ps + links[link].latency_ps for link in route)
        tail_ps = (FLITS - 1) * max(links[link].flit_ps for link in route)
        assert found[index] == apart_ps * index + head_ps + tail_ps
    from_corner_to_corner = mesh.num_nodes - 2  # the last one that the first node sends
    assert found[from_corner_to_corner] == apart_ps * from_corner_to_corner + corner_ps


@every_engine
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_with_buffers_beyond_need_credits_change_nothing(kind: EngineKind, load: float) -> None:
    plain, buffered = (
        run_load(load_of(mesh_load(mesh, num_messages=1_000, load=load, seed=8)), kind)
        for mesh in (MeshSpec(8), MeshSpec(8, buffer_flits=10**6))
    )
    assert buffered.starts_ps == plain.starts_ps
    assert buffered.ends_ps == plain.ends_ps
    assert buffered.engine.statistics().servers == plain.engine.statistics().servers


@every_engine
def test_with_small_buffers_packets_are_late(kind: EngineKind) -> None:
    plain, tight = (
        run_load(load_of(mesh_load(mesh, num_messages=1_000, load=0.7, seed=8)), kind).ends_ps
        for mesh in (MeshSpec(8), MeshSpec(8, buffer_flits=64))
    )
    assert sum(tight.values()) > sum(plain.values())


@every_engine
def test_a_buffer_smaller_than_a_packet_is_refused(kind: EngineKind) -> None:
    engine = build_engine(kind, EngineSpec(packet_flits=16))
    with pytest.raises(EngineError, match="buffer_flits = 15, expected at least 16"):
        engine.add_server(ServerSpec("link", bytes_per_us=1_000, buffer_flits=15))
