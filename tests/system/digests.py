"""Runs small loads on every engine and writes their digests; the determinism test starts it."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping

from tests.loads import FLIT_BYTES, server_of
from tilewright.engine import (
    Engine,
    EngineKind,
    EngineSpec,
    Hub,
    ServerSpec,
    TaskGraph,
    build_engine,
    digest_of,
    native_built,
)
from tilewright.validation.workload import (
    LinkSpec,
    MeshSpec,
    NetworkLoad,
    ReadStep,
    closed_loop,
    mesh_load,
)

__all__ = ("SEEDS", "WORKLOADS", "digests")

SEEDS = (1, 2, 3)
NUM_REPEATS = 2
LARGEST_FLITS = 64

Path = tuple[int, ...]


def engine_of(links: Iterable[LinkSpec], kind: EngineKind) -> Engine:
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, LARGEST_FLITS))
    engine.set_trace(True)
    for link in links:
        engine.add_server(server_of(link, link.name))
    return engine


def digest_after(engine: Engine) -> str:
    completions = [(effect, end_ps) for end_ps, effect in engine.take_effects()]
    return digest_of(completions, engine.take_trace())


def run_open(load: NetworkLoad, kind: EngineKind) -> str:
    engine = engine_of(load.links, kind)
    graph = TaskGraph()
    for message in load.messages:
        graph.transfer(
            engine.add_route(message.links, message.channels),
            num_bytes=message.flits * FLIT_BYTES,
            delay_ps=message.at_ps,
            effect=message.message_id,
        )
    engine.submit(graph)
    engine.run()
    return digest_after(engine)


def open_loop(seed: int, kind: EngineKind) -> str:
    return run_open(mesh_load(MeshSpec(6), num_messages=400, load=0.7, seed=seed), kind)


def finite_buffers(seed: int, kind: EngineKind) -> str:
    mesh = MeshSpec(6, buffer_flits=LARGEST_FLITS, round_robin=True)
    return run_open(mesh_load(mesh, num_messages=400, load=0.7, seed=seed), kind)


def programs(seed: int, kind: EngineKind) -> str:
    """Greenlets that read, compute and meet at a signal; sets of names would show hash order."""
    loop = closed_loop(MeshSpec(4), steps=4, seed=seed)
    engine = engine_of(loop.links, kind)
    hub = Hub(engine)
    arrived = engine.add_signal("arrived")
    routes: dict[Path, int] = {}

    def route(links: Path) -> int:
        if links not in routes:
            routes[links] = engine.add_route(links)
        return routes[links]

    def program(number: int, unit: int, steps: tuple[ReadStep, ...]) -> None:
        for index, step in enumerate(steps):
            graph = TaskGraph()
            asked = graph.transfer(route(step.request_links), num_bytes=1)
            effect = number * len(steps) + index
            num_bytes = step.response_flits * FLIT_BYTES
            back = route(step.response_links)
            got = graph.transfer(back, num_bytes=num_bytes, after=(asked,), effect=effect)
            graph.hold(unit, hold_ps=step.compute_ps, after=(got,), raises=((arrived, 1),))
            hub.wait(hub.submit(graph) + 2)
            hub.wait_signal(arrived, (index + 1) * len(loop.programs) // 2)  # for half of them

    for number, steps in enumerate(loop.programs):
        unit = engine.add_route([engine.add_server(ServerSpec(f"unit{number}"))])
        hub.spawn(program, number, unit, steps, name=f"node{number}")
    hub.run()
    return digest_after(engine)


WORKLOADS: Mapping[str, Callable[[int, EngineKind], str]] = {
    "open loop": open_loop,
    "finite buffers": finite_buffers,
    "programs": programs,
}


def digests() -> dict[str, list[str]]:
    """By workload and seed: the digests of all engines there are, each twice."""
    kinds = [EngineKind.REFERENCE, *([EngineKind.NATIVE] if native_built() else [])]
    return {
        f"{name}, seed {seed}": [
            run(seed, kind) for kind in kinds for _repeat in range(NUM_REPEATS)
        ]
        for name, run in WORKLOADS.items()
        for seed in SEEDS
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests()))
