"""STREAM and the memory's peak."""

from tests.programs.small import run_small


def test_the_four_launches_are_the_measured_window() -> None:
    outcome = run_small("stream")
    assert [launch.name for launch in outcome.launches] == ["copy", "scale", "add", "triad"]
    first, last = outcome.launches[0], outcome.launches[-1]
    assert outcome.latency_ps == last.completed_ps - first.submitted_ps


def test_long_streams_come_near_the_refresh_limited_peak() -> None:
    outcome = run_small("stream", elements=2**20, data=False)
    assert outcome.bound.resource == "HBM"
    execution_ps = sum(launch.execution_ps for launch in outcome.launches)
    assert outcome.bound.total_ps / execution_ps > 0.85
