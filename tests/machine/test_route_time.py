import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.shapes import open_mesh
from tilewright.engine import EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.machine.build import build_machine
from tilewright.machine.node import Link, LinkKind
from tilewright.machine.route_level import Traffic
from tilewright.machine.route_time import zero_load_ps


def link(bytes_per_us: int, wire_ps: int, *, reassemble: bool) -> Link:
    return Link(0, 1, LinkKind.NETWORK, bytes_per_us, wire_ps, 0, 4_096, wire_ps, reassemble)


links = st.builds(
    link, st.integers(20_000, 500_000), st.integers(1, 5_000), reassemble=st.booleans()
)


@settings(max_examples=60)
@given(chain=st.lists(links, min_size=1, max_size=6), num_flits=st.integers(1, 16))
def test_a_route_takes_what_the_engine_takes_for_one_packet(
    chain: list[Link], num_flits: int
) -> None:
    engine = build_engine(EngineKind.REFERENCE, EngineSpec(flit_bytes=64, packet_flits=16))
    names = [f"link{number}" for number in range(len(chain))]
    for name, each in zip(names, chain, strict=True):
        engine.add_server(
            ServerSpec(
                name,
                bytes_per_us=each.bytes_per_us,
                latency_ps=each.latency_ps,
                reassemble=each.reassemble,
            )
        )
    graph = TaskGraph()
    graph.transfer(engine.add_route(names), num_bytes=64 * num_flits, effect=0)
    engine.submit(graph)
    engine.run()
    [(end_ps, _)] = engine.take_effects()
    assert zero_load_ps(chain, num_flits=num_flits, flit_bytes=64) == end_ps


@pytest.mark.parametrize("num_flits", [1, 16])
def test_from_corner_to_corner_a_packet_takes_the_sum_of_hops_and_its_flits(num_flits: int) -> None:
    machine = build_machine(open_mesh(4))
    one, other = (machine.node_id(f"sip0.cube0.{name}.dma") for name in ("pe2", "pe15"))
    route = machine.route(one, other, Traffic.REQUEST, 0)
    assert len(route) == 2 + 6
    links_on = [machine.links[number] for number, _ in route]
    hops_ps = sum(250 + link.latency_ps for link in links_on)
    found = zero_load_ps(links_on, num_flits=num_flits, flit_bytes=64)
    assert found == hops_ps + (num_flits - 1) * 250
