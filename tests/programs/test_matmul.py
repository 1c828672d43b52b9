"""The sweep of matmul."""

from typing import Any

from tests.programs.small import run_small
from tilewright.programs.matmul import MATMUL, sweep_points


def test_points_are_every_shape_in_every_staging_once() -> None:
    points = sweep_points()
    names = {parameter.name for parameter in MATMUL.parameters}
    assert all(set(point) <= names for point in points)
    shapes = {(point["m"], point["k"], point["n"]) for point in points}
    stagings = {point["staging"] for point in points}
    assert stagings == {"ref/ref", "load/ref", "ref/load", "load/load"}
    assert len({tuple(point.items()) for point in points}) == len(shapes) * len(stagings)


def test_points_of_the_least_shape_run_above_their_bound() -> None:
    points = [dict[str, Any](point) for point in sweep_points() if point["k"] == 128]
    assert len(points) == 4
    for point in points:
        outcome = run_small("matmul", data=False, **point)
        assert outcome.bound.total_ps <= outcome.latency_ps
