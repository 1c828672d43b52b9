"""Products in every staging, dtype and epilogue."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.small import MACHINE, run_small
from tilewright.errors import BenchError
from tilewright.host import RuntimeContext
from tilewright.programs import PROGRAMS
from tilewright.programs.builtin.gemm import Product, StagingName, run_product, sweep_points
from tilewright.programs.inputs import team_of

STAGINGS = get_args(StagingName)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("staging", STAGINGS)
def test_every_staging_and_dtype_gives_the_product(staging: str, dtype: str) -> None:
    assert run_small("matmul", staging=staging, dtype=dtype).values_ok is True


@pytest.mark.parametrize("epilogue", ["fused", "apart"])
def test_an_epilogue_gives_the_finished_product(epilogue: str) -> None:
    assert run_small("matmul", epilogue=epilogue).values_ok is True


def test_a_fused_epilogue_saves_a_pass_over_memory() -> None:
    sizes: dict[str, Any] = {"m": 128, "n": 128, "k": 32, "pes": 1, "data": False}
    fused, apart = (run_small("matmul", epilogue=name, **sizes) for name in ("fused", "apart"))
    moved = [run.launches[0].counters for run in (fused, apart)]
    result_bytes = 128 * 128 * 2
    assert moved[1].stored_bytes - moved[0].stored_bytes == result_bytes
    assert moved[1].loaded_bytes - moved[0].loaded_bytes >= result_bytes
    assert fused.latency_ps < apart.latency_ps
    assert fused.bound == apart.bound


def test_an_operand_that_is_loaded_first_is_read_once() -> None:
    sizes: dict[str, Any] = {"m": 32, "k": 64, "n": 64, "tile_n": 16, "pes": 1, "data": False}
    streamed, loaded = (
        run_small("matmul", staging=staging, **sizes).launches[0].counters.loaded_bytes
        for staging in ("ref/ref", "load/load")
    )
    assert loaded == (32 * 64 + 64 * 64) * 2
    assert streamed > loaded


@settings(max_examples=15, deadline=None)
@given(
    m=st.integers(1, 40),
    n=st.integers(4, 40),
    k=st.integers(1, 40),
    tile=st.tuples(*[st.integers(1, 48)] * 3),
    staging=st.sampled_from(STAGINGS),
)
def test_any_sizes_and_tiles_give_the_product(
    m: int, n: int, k: int, tile: tuple[int, int, int], staging: Any
) -> None:
    with RuntimeContext(MACHINE) as torch:
        product = Product(m=m, n=n, k=k, tile=tile, staging=staging)
        outcome = run_product(torch, product, team_of(torch))
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n": 3}, "n=3 for 4 PEs, expected at least one for each PE"),
        ({"m": 0}, "m=0, expected at least 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        run_small("matmul", **parameters)


def test_parts_of_gpt3_are_equal() -> None:
    with pytest.raises(BenchError, match="ways=7, expected a divisor of 12288"):
        run_small("gpt3_qkv", ways=7)


def test_points_are_every_shape_in_every_staging_once() -> None:
    points = sweep_points()
    names = {parameter.name for parameter in PROGRAMS["matmul"].parameters}
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
