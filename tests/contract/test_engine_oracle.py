"""Engines against models written apart from them: flit by flit, in SimPy, and a wrong one."""

from collections import defaultdict
from functools import partial

import pytest
from hypothesis import given, settings

from tests.kinds import every_engine
from tests.loads import TransferLoad, load_of, random_load, run_load
from tests.strategies import choices
from tilewright.bench.peers import simpy_message
from tilewright.engine import EngineKind
from tilewright.validation.noc.flit import run_flits
from tilewright.validation.workload import MeshSpec, NetworkLoad, mesh_load

pytestmark = pytest.mark.timeout(600)  # `make test-all` runs many more examples
assert settings.default is not None
many = settings(max_examples=5 * settings.default.max_examples)
unbounded_loads = choices.map(partial(random_load, arbitrated=False))
arbitrated_loads = choices.map(partial(random_load, arbitrated=True))


def check_flits(load: TransferLoad, kind: EngineKind) -> None:
    """Every start, delivery and end; and a deadlock only where both see one."""
    expected, found = run_flits(load.packets), run_load(load, kind)
    assert found.starts_ps == expected.starts_ps
    assert found.delivered_ps == expected.delivered_ps
    assert found.is_deadlock == bool(expected.undelivered)
    ends_ps: dict[int, int] = defaultdict(int)
    sent = iter(load.packets.messages)
    for index, transfer in enumerate(load.transfers):
        for _ in range(0, transfer.flits, load.packet_flits):
            delivered_ps = expected.delivered_ps.get(next(sent).message_id)
            if delivered_ps is not None:
                ends_ps[index] = max(ends_ps[index], delivered_ps)
    assert found.ends_ps.items() <= ends_ps.items()
    assert found.is_deadlock or found.ends_ps == ends_ps


@every_engine
@many
@given(load=unbounded_loads)
def test_the_engine_equals_the_flits_on_unbounded_links_of_mixed_speed(
    kind: EngineKind, load: TransferLoad
) -> None:
    check_flits(load, kind)


@every_engine
@many
@given(load=arbitrated_loads)
def test_the_engine_equals_the_flits_with_credits_channels_and_round_robin(
    kind: EngineKind, load: TransferLoad
) -> None:
    check_flits(load, kind)


MESHES = {
    "unbounded": MeshSpec(4),
    "one packet of buffer": MeshSpec(4, buffer_flits=64),
    "two packets of buffer": MeshSpec(4, buffer_flits=128),
    "round robin": MeshSpec(4, round_robin=True),
    "round robin and buffers": MeshSpec(4, buffer_flits=64, round_robin=True),
}


@every_engine
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_the_engine_equals_the_flits_on_a_mesh_at_high_load(
    kind: EngineKind, mesh: MeshSpec
) -> None:
    check_flits(load_of(mesh_load(mesh, num_messages=250, load=0.9, seed=3)), kind)


@every_engine
@given(load=unbounded_loads)
def test_the_engine_equals_the_queues_of_simpy(kind: EngineKind, load: TransferLoad) -> None:
    assert run_load(load, kind).delivered_ps == simpy_message.run_open(load.packets).delivered_ps


@every_engine
@given(load=arbitrated_loads)
def test_the_engine_equals_the_arbiters_of_simpy(kind: EngineKind, load: TransferLoad) -> None:
    assert run_load(load, kind).delivered_ps == simpy_message.run_open(load.packets).delivered_ps


@every_engine
@pytest.mark.parametrize("seed", [1, 2])
def test_the_engine_equals_simpy_on_a_large_mesh(kind: EngineKind, seed: int) -> None:
    load = mesh_load(MeshSpec(8), num_messages=1_000, load=0.7, seed=seed)
    found = run_load(load_of(load), kind)
    assert found.delivered_ps == simpy_message.run_open(load).delivered_ps


def walk(load: NetworkLoad) -> dict[int, int]:
    """Books the whole path of a message when it enters: one step per message, and wrong."""
    free_ps = [0] * len(load.links)
    delivered_ps: dict[int, int] = {}
    for message in sorted(load.messages, key=lambda sent: (sent.at_ps, sent.message_id)):
        head_ps = tail_ps = message.at_ps
        for index in message.links:
            link = load.links[index]
            start_ps = max(head_ps, free_ps[index])
            free_ps[index] = max(start_ps + message.flits * link.flit_ps, tail_ps + link.flit_ps)
            head_ps = start_ps + link.flit_ps + link.latency_ps
            tail_ps = free_ps[index] + link.latency_ps
        delivered_ps[message.message_id] = tail_ps
    return delivered_ps


@every_engine
def test_the_engine_does_not_walk_whole_paths_at_injection(kind: EngineKind) -> None:
    load = mesh_load(MeshSpec(8), num_messages=1_500, load=0.7, seed=1)
    found, walked = run_load(load_of(load), kind).delivered_ps, walk(load)
    num_wrong = sum(walked[message_id] != end_ps for message_id, end_ps in found.items())
    assert num_wrong > 0.5 * len(found)


@every_engine
def test_without_contention_a_walk_is_right(kind: EngineKind) -> None:
    load = mesh_load(MeshSpec(8), num_messages=50, load=0.0001, seed=1)
    assert run_load(load_of(load), kind).delivered_ps == walk(load)
