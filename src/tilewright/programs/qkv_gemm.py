"""A projection to queries, keys and values: A stays in the TCM, B is streamed past it."""

from typing import Annotated

from tilewright.host import RuntimeContext
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Dtype
from tilewright.programs.fit import ProgramFit, fit_shares
from tilewright.programs.product import (
    STREAMED,
    TILE_NAMES,
    Product,
    Staging,
    TileK,
    TileM,
    TileN,
    run_product,
)
from tilewright.programs.team import Cubes, Pes, team_of


def _run(
    torch: RuntimeContext,
    m: Annotated[int, "rows of A: tokens"] = 128,
    k: Annotated[int, "columns of A"] = 256,
    n: Annotated[int, "columns of B, split over the PEs"] = 128,
    dtype: Dtype = "f16",
    staging: Staging = "load/ref",
    tile_m: TileM = 32,
    tile_n: TileN = 32,
    tile_k: TileK = 64,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    tile = (tile_m, tile_n, tile_k)
    product = Product(m=m, n=n, k=k, dtype=dtype, staging=staging, tile=tile)
    return run_product(torch, product, team_of(torch, cubes=cubes, pes=pes))


QKV_GEMM = BenchProgram(
    "qkv_gemm",
    "product 128 x 256 x 128, A loaded, B streamed, columns over the PEs of a cube",
    _run,
    fit=ProgramFit(
        counts=fit_shares("n"), instead=STREAMED, tiles=(TILE_NAMES,), sizes=(("m", "k", "n"),)
    ),
)
