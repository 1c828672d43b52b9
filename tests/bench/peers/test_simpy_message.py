import pytest

from tilewright.bench.peers import simpy_message
from tilewright.bench.peers.simpy_message import bare_timeout_rate, run_closed, run_open
from tilewright.errors import SpecError
from tilewright.validation.noc.flit import run_flits
from tilewright.validation.workload import (
    ClosedLoop,
    LinkSpec,
    MeshSpec,
    Message,
    NetworkLoad,
    ReadStep,
    closed_loop,
    mesh_load,
    request_id,
    response_id,
)


def test_a_hop_costs_three_events_besides_starting_the_workers() -> None:
    load = mesh_load(MeshSpec(4), num_messages=200, load=0.5, seed=1)
    run = run_open(load)
    assert run.num_hops == load.num_hops
    # a worker starts with one event and at the end waits for a get that never comes
    assert run.num_events == 3 * load.num_hops + len(load.links)


def test_with_credits_a_hop_costs_about_three_events() -> None:
    spec = MeshSpec(4, buffer_flits=128, round_robin=True)
    run = run_open(mesh_load(spec, num_messages=500, load=0.5, seed=1))
    assert 2.5 < run.events_per_hop < 3.5


def test_a_read_is_a_request_and_its_response_and_then_work() -> None:
    link = LinkSpec("link", flit_ps=2, latency_ps=5)
    step = ReadStep((0,), (1,), response_flits=3, compute_ps=100)
    run = run_closed(ClosedLoop((link, link), ((step, step),)))
    assert run.delivered_ps == {
        request_id(0, 0): 7,
        response_id(0, 0): 7 + 6 + 5,
        request_id(0, 1): 118 + 7,
        response_id(0, 1): 118 + 18,
    }


def as_open_load(loop: ClosedLoop, delivered_ps: dict[int, int]) -> NetworkLoad:
    """The messages of a closed loop, each entering when the one before it was delivered."""
    messages: list[Message] = []
    for program, steps in enumerate(loop.programs):
        at_ps = 0
        for index, step in enumerate(steps):
            halves = (
                (request_id(program, index), step.request_links, 1),
                (response_id(program, index), step.response_links, step.response_flits),
            )
            for message_id, links, flits in halves:
                messages.append(Message(message_id, at_ps, links, (0,) * len(links), flits))
                at_ps = delivered_ps[message_id]
            at_ps += step.compute_ps
    return NetworkLoad(loop.links, tuple(messages))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_times_of_a_closed_loop_are_those_of_its_messages_flit_by_flit(seed: int) -> None:
    loop = closed_loop(MeshSpec(4), steps=4, seed=seed, compute_ps=(250, 2_000))
    run = run_closed(loop)
    assert len(run.delivered_ps) == 2 * sum(map(len, loop.programs))
    assert run_flits(as_open_load(loop, dict(run.delivered_ps))).delivered_ps == run.delivered_ps


def test_a_closed_loop_over_links_that_arbitrate_is_refused() -> None:
    loop = closed_loop(MeshSpec(4, buffer_flits=128), steps=1, seed=1)
    with pytest.raises(SpecError, match="a link that arbitrates"):
        run_closed(loop)


def test_the_bare_rate_is_that_of_the_timeouts() -> None:
    assert bare_timeout_rate(100) > 0


def test_a_flit_costs_four_events_on_a_hop_and_a_packet_two() -> None:
    link = LinkSpec("link", flit_ps=1, latency_ps=1)
    run = simpy_message.run_flits(NetworkLoad((link,), (Message(0, 0, (0,), (0,), flits=10),)))
    assert run.num_events == 10 * 4 + 2 + 1  # and one that starts the worker


def test_links_that_arbitrate_are_refused() -> None:
    with pytest.raises(SpecError, match="a link that arbitrates"):
        simpy_message.run_flits(mesh_load(MeshSpec(4, buffer_flits=64), 1, 0.5, seed=1))
