"""A small product on one PE, both operands streamed."""

from typing import Annotated

from tilewright.host import RuntimeContext
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Dtype
from tilewright.programs.fit import ProgramFit
from tilewright.programs.product import (
    TILE_NAMES,
    Product,
    TileK,
    TileM,
    TileN,
    run_product,
)
from tilewright.programs.team import team_of


def _run(
    torch: RuntimeContext,
    m: Annotated[int, "rows of A"] = 32,
    k: Annotated[int, "columns of A"] = 128,
    n: Annotated[int, "columns of B"] = 32,
    dtype: Dtype = "f16",
    tile_m: TileM = 32,
    tile_n: TileN = 32,
    tile_k: TileK = 64,
) -> BenchOutcome:
    tile = (tile_m, tile_n, tile_k)
    product = Product(m=m, n=n, k=k, dtype=dtype, staging="ref/ref", tile=tile)
    return run_product(torch, product, team_of(torch, pes=1))


GEMM_SINGLE_PE = BenchProgram(
    "gemm_single_pe",
    "product 32 x 128 x 32 on one PE, both operands streamed",
    _run,
    fit=ProgramFit(tiles=(TILE_NAMES,), sizes=(("m", "k", "n"),)),
)
