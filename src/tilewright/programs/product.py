"""A matrix product over PEs: B and the result split by columns, A beside every part of B."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from tilewright.host import LocalShard, LocalSize, RuntimeContext, Tensor
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome
from tilewright.programs.draw import Draw, DtypeName
from tilewright.programs.kernels.product import (
    biased_product_kernel,
    biased_product_kernel_in_two,
    product_kernel,
)
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_shares, check_sizes
from tilewright.programs.team import Array, Team, deploy, reserve

Staging = Annotated[
    Literal["ref/ref", "load/ref", "ref/load", "load/load"],
    "of A/B: loaded as a whole before the product begins, or streamed tile by tile",
]
Epilogue = Annotated[
    Literal["none", "fused", "apart"],
    "bias and relu: not at all, on each tile before its store, or in a second pass over memory",
]
TileM = Annotated[int, "rows of a tile of the result"]
TileN = Annotated[int, "columns of a tile of the result"]
TileK = Annotated[int, "columns of a tile of A"]
TILE_NAMES = ("tile_m", "tile_n", "tile_k")
STREAMED = MappingProxyType({"staging": "ref/ref"})  # what needs least of a TCM
REFERENCE_COLUMNS = 512  # at a time, so that B in float64 stays small

_KERNELS = {"fused": biased_product_kernel, "apart": biased_product_kernel_in_two}


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """(m, k) by (k, n) in tiles of M, N, K."""

    m: int
    n: int
    k: int
    dtype: DtypeName = "f16"
    staging: Literal["ref/ref", "load/ref", "ref/load", "load/load"] = "ref/ref"
    tile: tuple[int, int, int]
    epilogue: Literal["none", "fused", "apart"] = "none"


@dataclass(frozen=True, slots=True)
class _Operands:
    a: Array
    b: Array
    bias: Array

    def expected(self, product: Product) -> Array:
        """In float64."""
        wide = self.a.astype(np.float64)
        columns = [
            wide @ self.b[:, first : first + REFERENCE_COLUMNS].astype(np.float64)
            for first in range(0, product.n, REFERENCE_COLUMNS)
        ]
        result = np.concatenate(columns, axis=1)
        if product.epilogue == "none":
            return result
        return np.maximum(result + self.bias.astype(np.float64), 0.0)


def run_product(torch: RuntimeContext, product: Product, team: Team) -> BenchOutcome:
    """One launch; every PE of the team has at least one column."""
    check_sizes("product", m=product.m, k=product.k)
    check_sizes("product", **dict(zip(TILE_NAMES, product.tile, strict=True)))
    check_shares("product", team, n=product.n)
    draw = Draw(torch)
    operands = _Operands(
        draw.normal((product.m, product.k), product.dtype),
        draw.normal((product.k, product.n), product.dtype),
        draw.normal((product.n,), product.dtype),
    )
    a = deploy(torch, "a", operands.a, team.policy())
    b = deploy(torch, "b", operands.b, team.split(-1))
    out = reserve(torch, "out", (product.m, product.n), product.dtype, team.split(-1))
    tensors = [a, b, out]
    if product.epilogue != "none":
        tensors.append(deploy(torch, "bias", operands.bias, team.split(-1)))
    report = torch.launch(*_launch_of(product, tensors)).report
    return measured(
        torch,
        (report,),
        bound_of(torch.machine, _work(product, team), Path(pes=report.pes)),
        error=lambda: row_error(out.numpy(timed=False), operands.expected(product)),
        tolerance=tolerance_of(product.dtype),
    )


def _launch_of(product: Product, tensors: list[Tensor]) -> tuple[Any, ...]:
    kernel = _KERNELS.get(product.epilogue, product_kernel)
    stagings = [word == "load" for word in product.staging.split("/")]
    sizes = (product.m, LocalSize(tensors[1], 1), product.k)
    return (kernel, *map(LocalShard, tensors), *sizes, *stagings, product.tile)


def _work(product: Product, team: Team) -> Work:
    """Every PE reads all of A; a product that is finished apart could have been fused."""
    m, n, k = product.m, product.n, product.k
    size = 4 if product.dtype == "f32" else 2
    finished = 0 if product.epilogue == "none" else m * n
    return Work(
        num_pes=team.num_pes,
        read_bytes=(team.num_pes * m * k + k * n) * size,
        written_bytes=m * n * size,
        flop={product.dtype: 2 * m * n * k},
        elements={"add": finished, "maximum": finished},
    )
