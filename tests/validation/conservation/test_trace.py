"""Rules over traces: silent on what engines do, loud on every defect."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.engine import EngineKind, TraceRecord, build_engine
from tilewright.validation.conservation.rules import (
    Defect,
    byte_lost,
    check_engine_fires,
    count_rises,
    done_too_soon,
    left_idle,
    overtook,
    sent_too_fast,
    started_unready,
    wait_forgotten,
)
from tilewright.validation.conservation.run import (
    Run,
    early,
    idle,
    least_ps,
    overtaken,
    overused,
    seeded_runs,
    too_fast,
    wrong_bytes,
    wrong_queues,
)
from tilewright.validation.workload import LinkSpec, Message, NetworkLoad

RULES = (wrong_bytes, overused, too_fast, idle, early, overtaken, wrong_queues)
DEFECTS = (
    (wrong_bytes, byte_lost),
    (overused, sent_too_fast),
    (too_fast, done_too_soon),
    (idle, left_idle),
    (early, started_unready),
    (overtaken, overtook),
    (wrong_queues, wait_forgotten),
)


@every_engine
def test_no_rule_fires_on_a_seeded_run(kind: EngineKind) -> None:
    assert [sum(rule(run) for run in seeded_runs(kind)) for rule in RULES] == [0] * len(RULES)


@every_engine
def test_seeded_runs_are_crowded(kind: EngineKind) -> None:
    """Packets wait on links that are busy, and on links that only lack room behind them."""
    for run in seeded_runs(kind):
        assert sum(server.wait_ps for server in run.statistics.servers) > 0
    tight = seeded_runs(kind)[-1]
    unbounded = tuple(replace(link, buffer_flits=None) for link in tight.load.links)
    assert idle(replace(tight, load=NetworkLoad(unbounded, tight.load.messages))) > 0


@settings(deadline=None, max_examples=40)
@given(pair=st.sampled_from(DEFECTS), number=st.integers(0, 11), seed=st.integers(0, 2**32 - 1))
def test_every_defect_is_found_wherever_it_is(
    pair: tuple[object, Defect], number: int, seed: int
) -> None:
    rule, defect = pair
    assert callable(rule)
    run: Run = seeded_runs(EngineKind.REFERENCE)[number]
    assert rule(run) == 0
    assert rule(defect(run, np.random.default_rng(seed))) > 0


def test_a_counter_that_is_right_breaks_no_rule_of_the_engine() -> None:
    finding = check_engine_fires(EngineKind.REFERENCE, counter="num_bytes", amount=0)
    assert finding.found == 0
    assert not finding.ok


LINK = LinkSpec("link", flit_ps=2, latency_ps=5)
TWO = NetworkLoad((LINK,), tuple(Message(number, 0, (0,), (0,), flits=3) for number in range(2)))


def run_of(*starts: int) -> Run:
    records = (TraceRecord(0, number, 0, at, at + 6) for number, at in enumerate(starts))
    return Run(TWO, tuple(records), build_engine().statistics())


@pytest.mark.parametrize(
    ("starts", "idle_links", "overtaken_packets"),
    [((0, 6), 0, 0), ((0, 7), 1, 0), ((1, 7), 1, 0), ((6, 0), 0, 1)],
)
def test_two_packets_on_a_link_by_hand(
    starts: tuple[int, int], idle_links: int, overtaken_packets: int
) -> None:
    run = run_of(*starts)
    assert (idle(run), overtaken(run)) == (idle_links, overtaken_packets)


def test_the_floor_is_the_work_of_a_link_or_the_way_of_a_message() -> None:
    assert least_ps(TWO) == max(2 * 3 * 2, 3 * 2 + 5)
    far = Message(2, 100, (0,), (0,), flits=1)
    assert least_ps(NetworkLoad((LINK,), (*TWO.messages, far))) == 100 + 2 + 5


def test_a_series_that_rises_is_counted() -> None:
    assert count_rises([5, 4, 4, 6, 2, 3]) == 2
