from collections import Counter
from statistics import mean

import pytest

from tilewright.errors import SpecError
from tilewright.validation.workload import (
    LinkSpec,
    Mesh,
    MeshSpec,
    Message,
    NetworkLoad,
    PerNode,
    closed_loop,
    mesh_load,
    request_id,
    response_id,
)

LINK = LinkSpec("link", flit_ps=1, latency_ps=3, buffer_flits=8)


@pytest.mark.parametrize("side", [2, 3, 4, 8])
def test_a_mesh_has_four_k_times_k_minus_one_directed_links(side: int) -> None:
    assert len(Mesh(MeshSpec(side)).links) == 4 * side * (side - 1)


@pytest.mark.parametrize("side", [4, 8])
def test_the_mean_route_between_different_nodes_is_two_thirds_of_the_side(side: int) -> None:
    mesh, nodes = Mesh(MeshSpec(side)), range(side**2)
    hops = [len(mesh.route(a, b)) for a in nodes for b in nodes if a != b]
    assert sum(hops) * 3 == 2 * side * len(hops)


def test_a_route_first_follows_the_row_and_then_the_column() -> None:
    mesh = Mesh(MeshSpec(4))
    names = [mesh.links[index].name for index in mesh.route(13, 2)]
    assert names == ["mesh.x1y3.x2y3", "mesh.x2y3.x2y2", "mesh.x2y2.x2y1", "mesh.x2y1.x2y0"]


def test_only_the_links_between_the_middle_columns_are_slow() -> None:
    slow = [link.name for link in Mesh(MeshSpec(4)).links if link.flit_ps == 500]
    east = [f"mesh.x1y{y}.x2y{y}" for y in range(4)]
    west = [f"mesh.x2y{y}.x1y{y}" for y in range(4)]
    assert sorted(slow) == sorted(east + west)


def test_the_load_is_the_use_of_the_bisection() -> None:
    spec = MeshSpec(side=8)
    load = mesh_load(spec, num_messages=20_000, load=0.5, seed=3)
    slow = {index for index, link in enumerate(load.links) if link.flit_ps == spec.slow_flit_ps}
    crossing = sum(m.flits for m in load.messages if slow & set(m.links))
    capacity = 2 * spec.side * load.messages[-1].at_ps / spec.slow_flit_ps
    assert crossing / capacity == pytest.approx(0.5, rel=0.04)


@pytest.mark.parametrize("side", [4, 8])
def test_a_load_per_node_does_not_depend_on_the_size_of_the_mesh(side: int) -> None:
    load = mesh_load(MeshSpec(side), num_messages=20_000, load=PerNode(100.0), seed=3)
    flits = sum(message.flits for message in load.messages)
    per_us = flits / side**2 / (load.messages[-1].at_ps * 1e-6)
    assert per_us == pytest.approx(100.0, rel=0.04)


def test_messages_never_go_to_their_own_node_and_keep_to_the_sizes() -> None:
    load = mesh_load(MeshSpec(4), num_messages=5_000, load=0.5, seed=1)
    assert min(len(message.links) for message in load.messages) == 1
    sizes = Counter(message.flits for message in load.messages)
    assert (min(sizes), max(sizes)) == (4, 64)
    assert mean(message.flits for message in load.messages) == pytest.approx(34, rel=0.04)


def test_a_seed_gives_one_load_and_another_seed_another() -> None:
    spec = MeshSpec(4)
    assert mesh_load(spec, 50, 0.5, seed=1) == mesh_load(spec, 50, 0.5, seed=1)
    assert mesh_load(spec, 50, 0.5, seed=1) != mesh_load(spec, 50, 0.5, seed=2)
    assert closed_loop(spec, 3, seed=1) == closed_loop(spec, 3, seed=1)


def test_finite_buffers_change_the_links_and_not_the_messages() -> None:
    plain = mesh_load(MeshSpec(4), 50, 0.5, seed=1)
    finite = mesh_load(MeshSpec(4, buffer_flits=128, round_robin=True), 50, 0.5, seed=1)
    assert finite.messages == plain.messages
    assert (finite.arbitrates, plain.arbitrates) == (True, False)


def test_a_closed_loop_has_a_program_on_each_node_that_gets_an_answer() -> None:
    loop = closed_loop(MeshSpec(4), steps=3, seed=1)
    assert [len(program) for program in loop.programs] == [3] * 16
    for program in loop.programs:
        for step in program:
            assert len(step.request_links) == len(step.response_links) >= 1


def test_ids_are_owner_and_sequence() -> None:
    assert request_id(program=2, step=3) == 2 * 2**40 + 6
    assert response_id(program=2, step=3) == 2 * 2**40 + 7


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (Message(7, 0, (), (), 1), "message 7: found 0 links and 0 channels"),
        (Message(7, 0, (0, 0), (0,), 1), "message 7: found 2 links and 1 channels"),
        (Message(7, 0, (0,), (0,), 0), "message 7: found 0 flits at 0 ps"),
        (Message(7, -1, (0,), (0,), 1), "message 7: found 1 flits at -1 ps"),
        (Message(7, 0, (0, 0), (0, 0), 9), "message 7: found 9 flits for a buffer of 8"),
    ],
)
def test_a_message_that_could_never_arrive_is_refused(message: Message, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        NetworkLoad((LINK,), (message,))


def test_one_id_for_two_messages_is_refused() -> None:
    message = Message(7, 0, (0,), (0,), 1)
    with pytest.raises(SpecError, match="a message id twice"):
        NetworkLoad((LINK,), (message, message))


def test_a_link_without_flit_time_or_with_negative_latency_is_refused() -> None:
    with pytest.raises(SpecError, match="flit_ps 0"):
        LinkSpec("link", flit_ps=0, latency_ps=3)
    with pytest.raises(SpecError, match="latency_ps -1"):
        LinkSpec("link", flit_ps=1, latency_ps=-1)
