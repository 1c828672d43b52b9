"""A small product on one PE, both operands streamed."""

from typing import Annotated

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.draw import Dtype
from tilewright.benches.programs.product import Product, run_product
from tilewright.benches.programs.team import team_of
from tilewright.host import RuntimeContext

__all__ = ("GEMM_SINGLE_PE",)

TILE = (32, 32, 64)  # M, N, K


def _run(
    torch: RuntimeContext,
    m: Annotated[int, "rows of A"] = 32,
    k: Annotated[int, "columns of A"] = 128,
    n: Annotated[int, "columns of B"] = 32,
    dtype: Dtype = "f16",
) -> BenchOutcome:
    product = Product(m=m, n=n, k=k, dtype=dtype, staging="ref/ref", tile=TILE)
    return run_product(torch, product, team_of(torch, pes=1))


GEMM_SINGLE_PE = BenchProgram(
    "gemm_single_pe", "product 32 x 128 x 32 on one PE, both operands streamed", _run
)
