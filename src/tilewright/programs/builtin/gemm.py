"""Matrix products: B and the result are split by columns, A is beside every part of B."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product as combinations
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import numpy as np

from tilewright import language as tl
from tilewright.errors import BenchError
from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Work
from tilewright.programs.contract import (
    BenchOutcome,
    BenchProgram,
    measured,
    row_error,
    tolerance_of,
)
from tilewright.programs.inputs import (
    Array,
    Cubes,
    Draw,
    Dtype,
    DtypeName,
    Pes,
    Sips,
    Team,
    check_shares,
    check_sizes,
    deploy,
    reserve,
    team_of,
)
from tilewright.programs.parameter import (
    Changes,
    Offer,
    ParameterValue,
    ProgramFit,
    Values,
    fit_shares,
)

StagingName = Literal["ref/ref", "load/ref", "ref/load", "load/load"]
Staging = Annotated[
    StagingName,
    "of A/B: loaded as a whole before the product begins, or streamed tile by tile",
]
EpilogueName = Literal["none", "fused", "apart"]
Epilogue = Annotated[
    EpilogueName,
    "bias and relu: not at all, on each tile before its store, or in a second pass over memory",
]
TileM = Annotated[int, "rows of a tile of the result"]
TileN = Annotated[int, "columns of a tile of the result"]
TileK = Annotated[int, "columns of a tile of A"]
Tile = tuple[int, int, int]  # M, N, K

TILE_NAMES = ("tile_m", "tile_n", "tile_k")
STREAMED = MappingProxyType({"staging": "ref/ref"})  # what needs least of a TCM
REFERENCE_COLUMNS = 512  # at a time, so that B in float64 stays small
MODEL_DIM = 12_288  # channels of GPT-3 (175B)
MAX_WAYS = 4_096  # of those that are powers of two: three columns of each of Q, K and V
SWEEP_SHAPES = (  # m, k, n, each on one PE
    (32, 128, 32),
    (32, 3072, 32),
    (128, 256, 128),
    (256, 256, 256),
    (512, 512, 512),
)


def product_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, m: int, n: int, k: int,
    loads_a: bool, loads_b: bool, tile: Tile,
) -> None:  # fmt: skip
    """out (m, n) = a (m, k) b (k, n). What is loaded first stays; the rest comes tile by tile."""
    a, b = _staged(a_ptr, (m, k), loads_a), _staged(b_ptr, (k, n), loads_b)
    tl.composite("gemm", a, b, out_ptr, tile_shape=tile)


def biased_product_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, bias_ptr: Any, m: int, n: int, k: int,
    loads_a: bool, loads_b: bool, tile: Tile,
) -> None:  # fmt: skip
    """out = relu(a b + bias), each tile finished before its store."""
    a, b = _staged(a_ptr, (m, k), loads_a), _staged(b_ptr, (k, n), loads_b)
    epilogue = [("bias", tl.ref(bias_ptr, (n,))), "relu"]
    tl.composite("gemm", a, b, out_ptr, epilogue=epilogue, tile_shape=tile)


def biased_product_kernel_in_two(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, bias_ptr: Any, m: int, n: int, k: int,
    loads_a: bool, loads_b: bool, tile: Tile,
) -> None:  # fmt: skip
    """The same in two passes over memory: the product goes out, comes back and is finished."""
    product_kernel(a_ptr, b_ptr, out_ptr, m, n, k, loads_a, loads_b, tile)
    out = tl.ref(out_ptr, (m, n))
    tl.composite("add", out, tl.ref(bias_ptr, (n,)), out, epilogue=["relu"], tile_shape=tile)


def _staged(pointer: Any, shape: tuple[int, int], is_loaded: bool) -> Any:
    return tl.load(pointer, shape=shape) if is_loaded else tl.ref(pointer, shape)


_KERNELS = {
    "none": product_kernel,
    "fused": biased_product_kernel,
    "apart": biased_product_kernel_in_two,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """(m, k) by (k, n) in tiles of M, N, K."""

    m: int
    n: int
    k: int
    dtype: DtypeName = "f16"
    staging: StagingName = "ref/ref"
    tile: Tile
    epilogue: EpilogueName = "none"

    def expected(self, a: Array, b: Array, bias: Array) -> Array:
        """Return the result in float64."""
        wide = a.astype(np.float64)
        columns = [
            wide @ b[:, first : first + REFERENCE_COLUMNS].astype(np.float64)
            for first in range(0, self.n, REFERENCE_COLUMNS)
        ]
        result = np.concatenate(columns, axis=1)
        if self.epilogue == "none":
            return result
        return np.maximum(result + bias.astype(np.float64), 0.0)


def run_product(torch: RuntimeContext, product: Product, team: Team) -> BenchOutcome:
    """Multiply in one launch; every PE of the team has at least one column."""
    m, n, k, dtype = product.m, product.n, product.k, product.dtype
    check_sizes("product", m=m, k=k, **dict(zip(TILE_NAMES, product.tile, strict=True)))
    check_shares("product", team, n=n)
    draw, columns = Draw(torch), team.split(-1)
    a, b, bias = (draw.normal(shape, dtype) for shape in ((m, k), (k, n), (n,)))
    tensors = [deploy(torch, "a", a, team.policy()), deploy(torch, "b", b, columns)]
    out = reserve(torch, "out", (m, n), dtype, columns)
    tensors.append(out)
    finished = 0
    if product.epilogue != "none":
        tensors.append(deploy(torch, "bias", bias, columns))
        finished = m * n
    stagings = [word == "load" for word in product.staging.split("/")]
    report = torch.launch(
        _KERNELS[product.epilogue], *map(LocalShard, tensors),
        m, LocalSize(tensors[1], 1), k, *stagings, product.tile,
    ).report  # fmt: skip
    work = Work(  # every PE reads all of A; a product that is finished apart could have been fused
        num_pes=team.num_pes,
        read_bytes=(team.num_pes * m * k + k * n) * a.itemsize,
        written_bytes=m * n * a.itemsize,
        flop={dtype: 2 * m * n * k},
        elements={"add": finished, "maximum": finished},
    )
    return measured(
        torch,
        report,
        work,
        lambda: row_error(out.numpy(timed=False), product.expected(a, b, bias)),
        tolerance=tolerance_of(dtype),
    )


def _run_qkv(
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


def _run_single_pe(
    torch: RuntimeContext,
    m: Annotated[int, "rows of A"] = 32,
    k: Annotated[int, "columns of A"] = 128,
    n: Annotated[int, "columns of B"] = 32,
    dtype: Dtype = "f16",
    tile_m: TileM = 32,
    tile_n: TileN = 32,
    tile_k: TileK = 64,
) -> BenchOutcome:
    product = Product(m=m, n=n, k=k, dtype=dtype, tile=(tile_m, tile_n, tile_k))
    return run_product(torch, product, team_of(torch, pes=1))


def _run_gpt3(
    torch: RuntimeContext,
    tokens: Annotated[int, "rows of the activations"] = 32,
    ways: Annotated[int, "of tensor parallelism: one of so many equal parts is computed"] = 16,
    dtype: Dtype = "f16",
    staging: Staging = "load/ref",
    tile_m: TileM = 32,
    tile_n: TileN = 288,
    tile_k: TileK = 128,
    sips: Sips = 1,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("gpt3_qkv", tokens=tokens, ways=ways)
    if MODEL_DIM % ways:
        expected = f"a divisor of {MODEL_DIM}"
        raise BenchError("gpt3_qkv", f"ways={ways}", expected, "take a power of two")
    tile, columns = (tile_m, tile_n, tile_k), 3 * MODEL_DIM // ways
    product = Product(m=tokens, n=columns, k=MODEL_DIM, dtype=dtype, staging=staging, tile=tile)
    return run_product(torch, product, team_of(torch, sips=sips, cubes=cubes, pes=pes))


def _fit_gpt3(offer: Offer, values: Values) -> Changes:
    columns = {"columns": 3 * MODEL_DIM // max(1, int(values["ways"]))}
    return fit_shares("columns")(offer, {**values, **columns})


def _run_any(
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
    """Return the parameters of a sweep of ``matmul``: every shape in every staging, on one PE."""
    return tuple(
        {"m": m, "k": k, "n": n, "staging": staging, "pes": 1}
        for (m, k, n), staging in combinations(SWEEP_SHAPES, get_args(StagingName))
    )


_FIT = ProgramFit(
    counts=fit_shares("n"), instead=STREAMED, tiles=(TILE_NAMES,), sizes=(("m", "k", "n"),)
)

PROGRAMS = (
    BenchProgram(
        "qkv_gemm",
        "product 128 x 256 x 128, A loaded, B streamed, columns over the PEs of a cube",
        _run_qkv,
        fit=_FIT,
    ),
    BenchProgram(
        "gemm_single_pe",
        "product 32 x 128 x 32 on one PE, both operands streamed",
        _run_single_pe,
        fit=ProgramFit(tiles=_FIT.tiles, sizes=_FIT.sizes),
    ),
    BenchProgram(
        "gpt3_qkv",
        "QKV projection of GPT-3: a sixteenth of its columns on a sixteenth of a SIP",
        _run_gpt3,
        fit=ProgramFit(
            counts=_fit_gpt3, instead=STREAMED, tiles=(TILE_NAMES,), parts={"ways": MAX_WAYS}
        ),
    ),
    BenchProgram(
        "matmul",
        "matrix product in any staging, tile shape and epilogue, columns over PEs",
        _run_any,
        fit=_FIT,
    ),
)
