"""The QKV projection of GPT-3 (175B): 12288 channels to three times as many."""

from typing import Annotated

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.draw import Dtype
from tilewright.benches.programs.product import Product, run_product
from tilewright.benches.programs.size import check_sizes
from tilewright.benches.programs.team import Cubes, Pes, Sips, team_of
from tilewright.errors import BenchError
from tilewright.host import RuntimeContext

__all__ = ("GPT3_QKV",)

MODEL_DIM = 12_288
TILE = (32, 288, 128)  # M, N, K


def _run(
    torch: RuntimeContext,
    tokens: Annotated[int, "rows of the activations"] = 32,
    ways: Annotated[int, "of tensor parallelism: one of so many equal parts is computed"] = 16,
    dtype: Dtype = "f16",
    sips: Sips = 1,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("gpt3_qkv", tokens=tokens, ways=ways)
    if MODEL_DIM % ways:
        expected = f"a divisor of {MODEL_DIM}"
        raise BenchError("gpt3_qkv", f"ways={ways}", expected, "take a power of two")
    product = Product(
        m=tokens, n=3 * MODEL_DIM // ways, k=MODEL_DIM, dtype=dtype, staging="load/ref", tile=TILE
    )
    return run_product(torch, product, team_of(torch, sips=sips, cubes=cubes, pes=pes))


GPT3_QKV = BenchProgram(
    "gpt3_qkv", "QKV projection of GPT-3: a sixteenth of its columns on a sixteenth of a SIP", _run
)
