from fractions import Fraction

import pytest

from tilewright.engine import Engine, RouteStatistics, ServerSpec, ServerStatistics, TaskGraph
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
