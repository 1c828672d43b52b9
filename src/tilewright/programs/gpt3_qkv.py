"""The QKV projection of GPT-3 (175B): 12288 channels to three times as many."""

from typing import Annotated

from tilewright.errors import BenchError
from tilewright.host import RuntimeContext
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Dtype
from tilewright.programs.fit import Changes, Offer, ProgramFit, Values, fit_shares
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
from tilewright.programs.size import check_sizes
from tilewright.programs.team import Cubes, Pes, Sips, team_of

MODEL_DIM = 12_288
MAX_WAYS = 4_096  # of those that are powers of two: three columns of each of Q, K and V


def _run(
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
    product = Product(
        m=tokens, n=3 * MODEL_DIM // ways, k=MODEL_DIM, dtype=dtype, staging=staging,
        tile=(tile_m, tile_n, tile_k),
    )  # fmt: skip
    return run_product(torch, product, team_of(torch, sips=sips, cubes=cubes, pes=pes))


def _counts(offer: Offer, values: Values) -> Changes:
    columns = {"columns": 3 * MODEL_DIM // max(1, int(values["ways"]))}
    return fit_shares("columns")(offer, {**values, **columns})


GPT3_QKV = BenchProgram(
    "gpt3_qkv",
    "QKV projection of GPT-3: a sixteenth of its columns on a sixteenth of a SIP",
    _run,
    fit=ProgramFit(counts=_counts, instead=STREAMED, tiles=(TILE_NAMES,), parts={"ways": MAX_WAYS}),
)
