"""One suite for every model of a network: the flit oracle and the SimPy peers."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.bench.peers import simpy_message
from tilewright.validation.noc.flit import run_flits
from tilewright.validation.workload import LinkSpec, Mesh, MeshSpec, Message, NetworkLoad, mesh_load

Model = Callable[[NetworkLoad], Mapping[int, int]]


def flit_oracle(load: NetworkLoad) -> Mapping[int, int]:
    return run_flits(load).delivered_ps


def message_peer(load: NetworkLoad) -> Mapping[int, int]:
    return simpy_message.run_open(load).delivered_ps


def flit_peer(load: NetworkLoad) -> Mapping[int, int]:
    return simpy_message.run_flits(load).delivered_ps


ARBITRATING = (flit_oracle, message_peer)
every_model = pytest.mark.parametrize("model", [*ARBITRATING, flit_peer])
every_arbitrating_model = pytest.mark.parametrize("model", ARBITRATING)


def link(flit_ps: int = 1, latency_ps: int = 1, **options: int | bool) -> LinkSpec:
    return replace(LinkSpec("link", flit_ps, latency_ps), **options)  # type: ignore[arg-type]


def message(message_id: int, at_ps: int, links: tuple[int, ...], flits: int) -> Message:
    return Message(message_id, at_ps, links, (0,) * len(links), flits)


def load_of(links: list[LinkSpec], *messages: Message) -> NetworkLoad:
    return NetworkLoad(tuple(links), messages)


@every_model
@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        (MeshSpec(4, unit_ps=1, slow_units=(1, 3)), 6 * (1 + 3) + 15),
        (MeshSpec(8, unit_ps=1, slow_units=(1, 3)), 14 * (1 + 3) + 15),
        (MeshSpec(8, unit_ps=1), 13 * (1 + 3) + (2 + 20) + 15 * 2),
    ],
)
def test_corner_to_corner_costs_the_latencies_and_the_slowest_link(
    model: Model, mesh: MeshSpec, expected: int
) -> None:
    network = Mesh(mesh)
    corner = message(0, 0, network.route(0, mesh.num_nodes - 1), flits=16)
    assert model(NetworkLoad(network.links, (corner,))) == {0: expected}
    assert expected in {39, 71, 104}


@every_model
def test_an_idle_path_between_any_two_nodes_costs_its_closed_form(model: Model) -> None:
    network = Mesh(MeshSpec(4, unit_ps=1))
    pairs = [(a, b) for a in range(16) for b in range(16) if a != b]
    messages = [
        message(index, index * 1_000, network.route(a, b), flits=5)
        for index, (a, b) in enumerate(pairs)
    ]
    expected: dict[int, int] = {}
    for sent in messages:
        path = [network.links[index] for index in sent.links]
        heads_ps = sum(hop.flit_ps + hop.latency_ps for hop in path)
        slowest_ps = max(hop.flit_ps for hop in path)
        expected[sent.message_id] = sent.at_ps + heads_ps + 4 * slowest_ps
    assert model(NetworkLoad(network.links, tuple(messages))) == expected


@every_model
def test_links_that_reassemble_store_and_forward(model: Model) -> None:
    links = [link(latency_ps=3, reassemble=True) for _ in range(3)]
    assert model(load_of(links, message(0, 0, (0, 1, 2), flits=16))) == {0: 3 * (3 + 16)}


@every_model
def test_of_two_packets_at_one_time_the_lower_id_goes_first(model: Model) -> None:
    second, first = message(1, 10, (0,), flits=3), message(0, 10, (0,), flits=4)
    # 10..18 and 18..24 on the link, then 5 more
    assert model(load_of([link(2, 5)], second, first)) == {0: 23, 1: 29}


@every_model
def test_of_two_packets_the_earlier_goes_first_whatever_its_id(model: Model) -> None:
    late, early = message(0, 10, (0,), flits=4), message(1, 9, (0,), flits=3)
    # 9..15 and 15..23 on the link, then 5 more
    assert model(load_of([link(2, 5)], late, early)) == {1: 20, 0: 28}


@every_model
def test_a_fast_link_is_held_for_the_time_of_the_slow_one_that_feeds_it(model: Model) -> None:
    # flits of 0 leave the slow link at 4, 8, 12; they hold the fast one from 5 to 13 + 1
    messages = message(0, 0, (0, 1), flits=3), message(1, 6, (1,), flits=1)
    assert model(load_of([link(4), link()], *messages)) == {0: 15, 1: 16}


@every_model
def test_a_reassembling_link_is_not_held_by_the_slow_one_that_feeds_it(model: Model) -> None:
    # 0 is whole at 13 and holds the fast link 13..16; 1 has long passed, 6..7
    messages = message(0, 0, (0, 1), flits=3), message(1, 6, (1,), flits=1)
    assert model(load_of([link(4), link(reassemble=True)], *messages)) == {0: 17, 1: 8}


@every_model
def test_a_packet_may_use_a_link_twice_and_waits_for_its_own_tail(model: Model) -> None:
    # held 0..9 by the first pass, whose head is back at 4, and 9..18 by the second
    assert model(load_of([link(3, 1)], message(0, 0, (0, 0), flits=3))) == {0: 19}


@every_arbitrating_model
def test_a_packet_without_credits_stalls_until_they_are_back(model: Model) -> None:
    # link 0: 0 starts at 0; link 1: head at 2, tail out at 6, credits back at 6 + 2: 1 starts at 8
    links = [link(buffer_flits=4, credit_ps=2), link()]
    messages = [message(index, 0, (0, 1), flits=4) for index in range(2)]
    assert model(load_of(links, *messages)) == {0: 7, 1: 15}
    assert model(load_of([link(), link()], *messages)) == {0: 7, 1: 11}


@every_arbitrating_model
def test_another_channel_passes_a_stalled_packet(model: Model) -> None:
    links = [link(buffer_flits=4, credit_ps=2), link()]
    stalled = [message(index, 0, (0, 1), flits=4) for index in range(2)]
    passing = Message(2, 0, (0, 1), channels=(1, 1), flits=4)
    # link 0: 0..4, then channel 1 at 4..8, then 1 with the credits at 8..12; link 1: 2, 6, 10
    assert model(load_of(links, *stalled, passing)) == {0: 7, 2: 11, 1: 15}


@every_arbitrating_model
def test_behind_a_stalled_packet_waits_even_one_that_needs_no_buffer(model: Model) -> None:
    links = [link(buffer_flits=4, credit_ps=2), link()]
    stalled = [message(index, 0, (0, 1), flits=4) for index in range(2)]
    behind = message(2, 0, (0,), flits=1)
    # link 0: 0..4, idle until the credits are back at 8, 8..12, and 2 at 12..13
    assert model(load_of(links, *stalled, behind)) == {0: 7, 1: 15, 2: 14}


def shared_link(*, round_robin: bool) -> NetworkLoad:
    """Link 2 gets 0 and 1 from the source, 2 and 3 from link 0, 4 from link 1; 4 ps each."""
    links = [link(), link(), link(2, round_robin=round_robin)]
    at_source = [message(index, 0, (2,), flits=2) for index in (0, 1)]
    by_link_0 = [message(index, 0, (0, 2), flits=2) for index in (2, 3)]  # ready at 2 and 4
    return load_of(links, *at_source, *by_link_0, message(4, 0, (1, 2), flits=2))  # ready at 2


@every_arbitrating_model
def test_round_robin_takes_turns_over_the_inputs(model: Model) -> None:
    assert model(shared_link(round_robin=True)) == {0: 5, 2: 9, 4: 13, 1: 17, 3: 21}


@every_model
def test_fifo_follows_the_times_of_arrival(model: Model) -> None:
    assert model(shared_link(round_robin=False)) == {0: 5, 1: 9, 2: 13, 4: 17, 3: 21}


@every_arbitrating_model
def test_a_grant_sees_all_that_arrives_at_its_time(model: Model) -> None:
    # both are ready at link 2 at time 2; the slot of link 0 comes before that of link 1
    messages = message(0, 0, (1, 2), flits=1), message(1, 0, (0, 2), flits=1)
    links = [link(), link(), link(round_robin=True)]
    assert model(load_of(links, *messages)) == {1: 4, 0: 5}


def ring(channels: list[tuple[int, int, int]]) -> NetworkLoad:
    """Three packets that each fill the buffer that the one before them needs; a bystander."""
    around = [
        Message(index, 0, (index, (index + 1) % 3, (index + 2) % 3), channels[index], flits=4)
        for index in range(3)
    ]
    return load_of([link(buffer_flits=4)] * 3, *around, message(3, 0, (0,), flits=4))


@every_arbitrating_model
def test_a_ring_of_full_buffers_deadlocks(model: Model) -> None:
    assert model(ring([(0, 0, 0)] * 3)) == {3: 9}


@every_arbitrating_model
def test_a_second_channel_behind_one_link_breaks_the_ring(model: Model) -> None:
    assert model(ring([(0, 0, 1), (0, 1, 1), (1, 1, 1)])).keys() == {0, 1, 2, 3}


@st.composite
def network_loads(draw: st.DrawFn, *, arbitrated: bool) -> NetworkLoad:
    max_flits = 6
    buffers = st.none() | st.integers(max_flits, 2 * max_flits) if arbitrated else st.none()
    specs = st.builds(
        LinkSpec,
        name=st.just("link"),
        flit_ps=st.integers(1, 4),
        latency_ps=st.integers(0, 5),
        buffer_flits=buffers,
        credit_ps=st.integers(0, 5),
        round_robin=st.booleans() if arbitrated else st.just(False),
        reassemble=st.booleans(),
    )
    links = draw(st.lists(specs, min_size=1, max_size=4))
    hops = st.tuples(st.integers(0, len(links) - 1), st.integers(0, 1 if arbitrated else 0))
    entries = st.tuples(
        st.integers(0, 20), st.lists(hops, min_size=1, max_size=5), st.integers(1, max_flits)
    )
    messages: list[Message] = []
    for index, (at_ps, route, flits) in enumerate(draw(st.lists(entries, max_size=12))):
        link_indices, channels = zip(*route, strict=True)
        messages.append(Message(index, at_ps, link_indices, channels, flits))
    order = draw(st.permutations(messages))
    return NetworkLoad(tuple(links), tuple(order))


@given(network_loads(arbitrated=False))
def test_all_models_agree_on_unbounded_links_of_mixed_speed(load: NetworkLoad) -> None:
    expected = flit_oracle(load)
    assert expected.keys() == {sent.message_id for sent in load.messages}
    assert message_peer(load) == expected
    assert flit_peer(load) == expected


@given(network_loads(arbitrated=True))
def test_arbitrating_models_agree_with_credits_and_channels(load: NetworkLoad) -> None:
    assert message_peer(load) == flit_oracle(load)  # after a deadlock too


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_all_models_agree_on_a_mesh(load: float) -> None:
    plain = mesh_load(MeshSpec(4), num_messages=150, load=load, seed=5)
    assert flit_oracle(plain) == message_peer(plain) == flit_peer(plain)


@pytest.mark.parametrize("buffer_flits", [64, 128])
@pytest.mark.parametrize("round_robin", [False, True])
def test_arbitrating_models_agree_on_a_mesh(buffer_flits: int, round_robin: bool) -> None:
    spec = MeshSpec(4, buffer_flits=buffer_flits, round_robin=round_robin)
    finite = mesh_load(spec, num_messages=300, load=0.9, seed=5)
    times_ps = flit_oracle(finite)
    assert len(times_ps) == 300
    assert message_peer(finite) == times_ps
    assert flit_oracle(mesh_load(MeshSpec(4), 300, 0.9, seed=5)) != times_ps
