"""Every seeded mistake is found, and nothing is found in its correct twin."""

import pytest

from tests.sanitizer.bounds import missing_mask
from tests.sanitizer.field import Mistake, play
from tests.sanitizer.freed import late_result, taken_place
from tests.sanitizer.queue import early_answer
from tests.sanitizer.race import same_tile
from tests.sanitizer.stale import foreign_row
from tests.sanitizer.table import MISTAKES
from tests.sanitizer.uninitialised import empty_operand
from tilewright.memory.sanitizer.finding import FindingKind

CASES = [
    pytest.param(kind, mistake, id=f"{kind.name.lower()}-{mistake.__name__}")
    for kind, mistakes in MISTAKES.items()
    for mistake in mistakes
]
TIMED = [
    pytest.param(mistake, wrong, id=f"{mistake.__name__}-{wrong}")
    for mistakes in MISTAKES.values()
    for mistake in mistakes
    for wrong in (True, False)
    if (mistake, wrong)
    != (taken_place, True)  # the run ends there: no other tensor takes its place
]
WITHOUT_VALUES = (empty_operand, missing_mask, late_result, foreign_row, same_tile, early_answer)
NUM_A_KIND, NUM_ALL = 4, 24
WAITING = frozenset((FindingKind.RACE, FindingKind.QUEUE_RACE))


@pytest.mark.parametrize(("kind", "mistake"), CASES)
def test_a_mistake_is_found_and_nothing_else(kind: FindingKind, mistake: Mistake) -> None:
    findings, _ = play(mistake, wrong=True)
    assert {finding.kind for finding in findings} == {kind}


@pytest.mark.parametrize(("kind", "mistake"), CASES)
def test_nothing_is_found_where_the_mistake_is_not(kind: FindingKind, mistake: Mistake) -> None:
    del kind
    findings, _ = play(mistake, wrong=False)
    assert [str(finding) for finding in findings] == []


@pytest.mark.parametrize(("mistake", "wrong"), TIMED)
def test_simulated_times_are_the_same_as_without_a_sanitizer(mistake: Mistake, wrong: bool) -> None:
    _, time_ps = play(mistake, wrong)
    _, plain_ps = play(mistake, wrong, sanitize=False)
    assert time_ps == plain_ps


@pytest.mark.parametrize(("kind", "mistake"), CASES)
def test_a_finding_says_who_where_and_when(kind: FindingKind, mistake: Mistake) -> None:
    """Both accesses of a race: lines of this folder, PEs, times, bytes, tensor and element."""
    findings, end_ps = play(mistake, wrong=True)
    for finding in findings:
        assert len(finding.sides) == (2 if kind in WAITING else 1)
        assert finding.tensor
        assert finding.element.startswith(finding.tensor.split()[0])
        assert finding.num_bytes > 0
        for side in finding.sides:
            assert "/tests/sanitizer/" in side.line
            assert side.actor == "the host" or "on sip0.cube0.pe" in side.actor
            assert side.at_ps is None or 0 <= side.at_ps <= end_ps
            assert side.num_bytes >= 4


@pytest.mark.parametrize("mistake", WITHOUT_VALUES)
def test_mistakes_are_found_where_only_time_is_asked_for(mistake: Mistake) -> None:
    (kind,) = (kind for kind, mistakes in MISTAKES.items() if mistake in mistakes)
    findings, _ = play(mistake, wrong=True, data=False)
    assert {finding.kind for finding in findings} == {kind}
    assert not play(mistake, wrong=False, data=False)[0]


def test_there_are_enough_mistakes_of_each_kind() -> None:
    assert set(MISTAKES) == set(FindingKind)
    assert all(len(mistakes) >= NUM_A_KIND for mistakes in MISTAKES.values())
    assert len(CASES) >= NUM_ALL
    names = [mistake.__name__ for mistakes in MISTAKES.values() for mistake in mistakes]
    assert len(set(names)) == len(names)
