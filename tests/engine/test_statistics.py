import os
import subprocess
import sys
from fractions import Fraction

import pytest

from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    RouteStatistics,
    ServerSpec,
    ServerStatistics,
    TaskGraph,
    TraceRecord,
    build_engine,
    digest_of,
)
from tilewright.errors import EngineError


def run_two_packets(engine: Engine) -> None:
    """Over a link where a packet takes 16 000 ps, with 8000 ps behind it."""
    engine.add_server(ServerSpec("link", bytes_per_us=64_000, latency_ps=8000))
    engine.add_server(ServerSpec("idle", bytes_per_us=64_000))
    graph = TaskGraph()
    graph.transfer(engine.add_route(["link"]), num_bytes=2048)
    engine.submit(graph)


def test_counters_carry_the_names_of_servers(engine: Engine) -> None:
    run_two_packets(engine)
    engine.run()
    statistics = engine.statistics()
    assert statistics.now_ps == 40_000
    assert statistics.servers == (
        ServerStatistics("link", 2, 2048, 32_000, 32_000, 16_000, 16_000, 1, 32_000),
        ServerStatistics("idle", 0, 0, 0, 0, 0, 0, 0, 0),
    )
    assert statistics.routes == (RouteStatistics(2, 2048, 2, 2048),)
    assert statistics.events > 0


def test_ratios_are_exact(engine: Engine) -> None:
    run_two_packets(engine)
    engine.run()
    statistics = engine.statistics()
    assert statistics.utilisation("link") == Fraction(32_000, 40_000)
    assert statistics.mean_wait_ps("link") == 8000
    assert statistics.mean_queue("link") == Fraction(16_000, 40_000)


def test_what_did_nothing_has_ratios_of_zero(engine: Engine) -> None:
    run_two_packets(engine)
    statistics = engine.statistics()
    assert statistics.utilisation("idle") == 0
    assert statistics.mean_wait_ps("idle") == 0
    assert statistics.mean_queue("idle") == 0


def test_a_server_is_never_more_than_fully_used_in_the_middle_of_a_run(engine: Engine) -> None:
    run_two_packets(engine)
    engine.advance(1)
    assert engine.statistics().utilisation("link") <= 1


def test_an_unknown_server_has_no_statistics(engine: Engine) -> None:
    with pytest.raises(EngineError, match="statistics: found no server 'link', expected"):
        engine.statistics().server("link")


def digest_of_a_run(engine: Engine) -> str:
    """Two flows that share a link with a small buffer."""
    for name in ("left", "right", "shared", "out"):
        spec = ServerSpec(
            name,
            bytes_per_us=64_000 if name == "shared" else 128_000,
            latency_ps=100,
            buffer_flits=32,
            arbitration=Arbitration.ROUND_ROBIN,
        )
        engine.add_server(spec)
    routes = [engine.add_route([name, "shared", "out"]) for name in ("left", "right")]
    engine.set_trace(True)
    completions = []
    for owner, route in enumerate(routes):
        graph = TaskGraph()
        for index in range(5):
            graph.transfer(route, num_bytes=1000 + 700 * index, delay_ps=900 * index)
        first_id = engine.submit(graph, owner=owner)
        for index in range(5):
            engine.watch(engine.task_id(graph, first_id, index))
    while wakes := engine.advance():
        completions += [(task_id, engine.now_ps) for task_id in wakes]
    return digest_of(completions, engine.take_trace())


def test_both_engines_have_one_digest(engine: Engine) -> None:
    assert digest_of_a_run(engine) == digest_of_a_run(build_engine(EngineKind.REFERENCE))


def test_the_digest_depends_on_no_hash_seed(kind: EngineKind) -> None:
    program = (
        "import runpy, sys\n"
        f"names = runpy.run_path({__file__!r})\n"
        f"kind = names['EngineKind']({kind.value!r})\n"
        "print(names['digest_of_a_run'](names['build_engine'](kind)))"
    )
    digests = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def test_the_digest_is_of_little_endian_numbers() -> None:
    assert digest_of([(1, 250)], [TraceRecord(0, 1, 0, 0, 250)]) == (
        "6fd7b5e4395194dda9e8f5343ef72ab8fa0c347bd655104197b4398b06e33940"
    )


def test_a_digest_sees_every_number_of_the_trace() -> None:
    record = TraceRecord(0, 1, 0, 0, 250)
    digests = {digest_of([], [record._replace(**{name: 7})]) for name in TraceRecord._fields}
    assert len(digests | {digest_of([], [record]), digest_of([(0, 1)])}) == 7


def test_completions_count_as_a_set_and_the_trace_as_a_sequence() -> None:
    one, two = TraceRecord(0, 1, 0, 0, 250), TraceRecord(0, 2, 0, 250, 500)
    assert digest_of([(1, 5), (0, 9)]) == digest_of([(0, 9), (1, 5)])
    assert digest_of([], [one, two]) != digest_of([], [two, one])
