"""Any product in any staging, and the points of its sweep."""

from collections.abc import Mapping
from itertools import product as combinations
from typing import Annotated, get_args

from tilewright.host import RuntimeContext
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Dtype
from tilewright.programs.fit import ProgramFit, fit_shares
from tilewright.programs.parameter import ParameterValue
from tilewright.programs.product import (
    STREAMED,
    TILE_NAMES,
    Epilogue,
    Product,
    Staging,
    TileK,
    TileM,
    TileN,
    run_product,
)
from tilewright.programs.team import Cubes, Pes, Sips, team_of

SWEEP_SHAPES = (  # m, k, n, each on one PE
    (32, 128, 32),
    (32, 3072, 32),
    (128, 256, 128),
    (256, 256, 256),
    (512, 512, 512),
)


def _run(
    torch: RuntimeContext,
    m: Annotated[int, "rows of A"] = 512,
    k: Annotated[int, "columns of A"] = 512,
    n: Annotated[int, "columns of B, split over the PEs"] = 512,
    dtype: Dtype = "f16",
    staging: Staging = "ref/ref",
    tile_m: TileM = 128,
    tile_n: TileN = 64,
    tile_k: TileK = 512,
    epilogue: Epilogue = "none",
    sips: Sips = 1,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    product = Product(
        m=m, n=n, k=k, dtype=dtype, staging=staging, tile=(tile_m, tile_n, tile_k),
        epilogue=epilogue,
    )  # fmt: skip
    return run_product(torch, product, team_of(torch, sips=sips, cubes=cubes, pes=pes))


def sweep_points() -> tuple[Mapping[str, ParameterValue], ...]:
    """Parameters of the runs of a sweep: every shape in every staging, on one PE."""
    stagings = get_args(get_args(Staging)[0])
    return tuple(
        {"m": m, "k": k, "n": n, "staging": staging, "pes": 1}
        for (m, k, n), staging in combinations(SWEEP_SHAPES, stagings)
    )


MATMUL = BenchProgram(
    "matmul",
    "matrix product in any staging, tile shape and epilogue, columns over PEs",
    _run,
    fit=ProgramFit(
        counts=fit_shares("n"), instead=STREAMED, tiles=(TILE_NAMES,), sizes=(("m", "k", "n"),)
    ),
)
