"""Programs of everything that an engine has, on both engines: all that a caller can see is equal.

A seed that is reported is a program: ``check_pair(whole_program(Seeded(seed)))``.
"""

import os
from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import given

from tests.engine_programs import Outcome, Program, run_program
from tests.kinds import needs_both_engines
from tests.strategies import Seeded
from tests.whole_programs import drawn_whole_programs, whole_program
from tilewright.engine import EngineKind, native_built

NUM_PROGRAMS = {"ci": 2_000, "all": 100_000}[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
NUM_PARTS = 20

pytestmark = pytest.mark.timeout(3600)  # `make test-all` runs fifty times as many


def differences(program: Program) -> list[str]:
    """The parts of an outcome that differ between the engines."""
    expected = run_program(program, EngineKind.REFERENCE)
    found = run_program(program, EngineKind.NATIVE)
    names = [field.name for field in fields(Outcome)]
    return [name for name in names if getattr(found, name) != getattr(expected, name)]


@needs_both_engines
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_both_engines_show_the_same_of_every_whole_program(part: int) -> None:
    seeds = range(part, NUM_PROGRAMS, NUM_PARTS)
    found = {seed: differences(whole_program(Seeded(seed))) for seed in seeds}
    assert {seed: names for seed, names in found.items() if names} == {}


@needs_both_engines
@given(drawn_whole_programs())
def test_both_engines_show_the_same_of_whole_programs_that_shrink(program: Program) -> None:
    assert differences(program) == []


def features(program: Program, outcome: Outcome) -> set[str]:
    """What a run is worth comparing for."""
    error = outcome.error or ""
    memories = {n for n, server in enumerate(program.servers) if server.memory is not None}
    starts = Counter((record.server, record.start_ps) for record in outcome.trace)
    channels = [channel for memory in outcome.memory_counters for channel in memory]
    tasks = [task for graph in program.graphs for task in graph]
    found = {
        "end": not error,
        "deadlock": outcome.is_deadlock,
        "time limit": error.startswith("TimeLimitError"),
        "server error": error.startswith("ServerError"),
        "hub": bool(program.hub_steps),
        "home": any(trip.is_home and trip.gate is not None for trip in program.round_trips),
        "inside": any(trip.inside is not None for trip in program.round_trips),
        "segments": any(task.segment_bytes is not None for task in tasks),
        "wait": any(server.wait_ps for server in outcome.statistics.servers),
        "memory": any(channel.window_ps for channel in channels),
        "refresh": any(channel.refresh_ps for channel in channels),
        "full memory": any(
            record.server in memories and record.start_ps > record.ready_ps
            for record in outcome.trace
        ),
        "accesses at once": any(
            starts[server, start_ps] > 1 for server, start_ps in starts if server in memories
        ),
    }
    return {feature for feature, is_found in found.items() if is_found}


LEAST_PERCENT = {
    "wait": 60,
    "end": 50,
    "memory": 30,
    "segments": 25,
    "hub": 20,
    "home": 15,
    "deadlock": 5,
    "refresh": 5,
    "full memory": 5,
    "accesses at once": 5,
    "inside": 5,
    "time limit": 1,
    "server error": 0.5,
}


def test_whole_programs_are_crowded() -> None:
    kind = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE
    num_programs = 500
    seen: Counter[str] = Counter()
    for seed in range(num_programs):
        program = whole_program(Seeded(seed))
        seen.update(features(program, run_program(program, kind)))
    shares = {feature: 100 * seen[feature] / num_programs for feature in LEAST_PERCENT}
    assert all(shares[feature] >= least for feature, least in LEAST_PERCENT.items()), shares
