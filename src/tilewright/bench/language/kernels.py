"""What the language benchmark runs: cases beside Triton's interpreter, and kernels of our own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import language as tl

Array = np.ndarray[Any, Any]


OUTPUTS = frozenset(("out_ptr", "mean_ptr", "rstd_ptr"))
"""Parameters that kernels write, which begin as zeros."""


@dataclass(frozen=True, slots=True)
class LanguageCase:
    """A kernel of ``tutorial_kernels`` with its sizes: shapes by parameter, and numbers."""

    name: str
    kernel: str
    grid: tuple[int, ...]
    shapes: Mapping[str, tuple[int, ...]]
    numbers: dict[str, Any]

    def arrays(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return arrays by parameter: normal numbers, and zeros for what comes out."""
        return {
            name: np.zeros(shape, np.float32)
            if name in OUTPUTS
            else rng.standard_normal(shape).astype(np.float32)
            for name, shape in self.shapes.items()
        }


VECTOR, MATRIX, TILES = (98_432,), (512, 512), (4, 1024, 64)
ROWS, ROW, COLUMN = (1151, 8192), (8192,), (1151,)

CASES: tuple[LanguageCase, ...] = (
    LanguageCase(
        "vector_add", "add_kernel", (97,),
        {"x_ptr": VECTOR, "y_ptr": VECTOR, "out_ptr": VECTOR},
        {"n": 98_432, "BLOCK": 1024},
    ),
    LanguageCase(
        "softmax", "softmax_kernel", (1823,),
        {"x_ptr": (1823, 781), "out_ptr": (1823, 781)},
        {"n_columns": 781, "BLOCK": 1024},
    ),
    LanguageCase(
        "matmul", "matmul_kernel", (64,),
        {"a_ptr": MATRIX, "b_ptr": MATRIX, "out_ptr": MATRIX},
        {"M": 512, "N": 512, "K": 512, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8},
    ),
    LanguageCase(
        "layer_norm", "layer_norm_kernel", (1151,),
        {"x_ptr": ROWS, "out_ptr": ROWS, "weight_ptr": ROW, "bias_ptr": ROW,
         "mean_ptr": COLUMN, "rstd_ptr": COLUMN},
        {"N": 8192, "eps": 1e-5, "BLOCK": 8192},
    ),
    LanguageCase(
        "flash_attention", "attention_kernel", (16, 4),
        {"q_ptr": TILES, "k_ptr": TILES, "v_ptr": TILES, "out_ptr": TILES},
        {"scale": 0.125, "N": 1024, "D": 64, "BLOCK_M": 64, "BLOCK_N": 64},
    ),
)  # fmt: skip


def decode_kernel(
    q_ptr: Any,
    k_ptr: Any,
    v_ptr: Any,
    out_ptr: Any,
    length: Any,
    scale: Any,
    group: int,
    head_dim: int,
    block: int,
) -> None:
    """Decode attention of one row: a group of query heads over all keys, plain loads in a loop."""
    row = tl.program_id(0)
    heads, dims, tokens = tl.arange(0, group), tl.arange(0, head_dim), tl.arange(0, block)
    q = tl.load(q_ptr + row * group * head_dim + heads[:, None] * head_dim + dims[None, :])
    base = row.to(tl.int64) * length * head_dim
    peak = tl.full([group], -float("inf"), tl.float32)
    total = tl.zeros([group], tl.float32)
    acc = tl.zeros([group, head_dim], tl.float32)
    for first in range(0, length, block):
        places = (first + tokens) * head_dim
        k = tl.load(k_ptr + base + places[None, :] + dims[:, None])
        scores = tl.dot(q, k) * scale
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        weights = tl.exp(scores - new_peak[:, None])
        fade = tl.exp(peak - new_peak)
        total = total * fade + tl.sum(weights, 1)
        v = tl.load(v_ptr + base + places[:, None] + dims[None, :])
        acc = tl.dot(weights.to(tl.float16), v, acc * fade[:, None])
        peak = new_peak
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(out_ptr + row * group * head_dim + heads[:, None] * head_dim + dims[None, :], out)


def gemm_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, m: int, n: int, k: int, tile: tuple[int, int, int]
) -> None:
    """The share of one PE of a product, as one composite that streams both operands."""
    share = tl.program_id(0).to(tl.int64)
    a = tl.ref(a_ptr + share * m * k, (m, k))
    b = tl.ref(b_ptr + share * k * n, (k, n))
    tl.composite("gemm", a, b, out_ptr + share * m * n, tile_shape=tile)


def step_kernel(x_ptr: Any, steps: Any, stride: Any, rows: int, columns: int) -> None:
    """Load a tile, compute on it, store it back; again and again."""
    base = tl.program_id(0) * stride
    places = base + tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]
    for _ in range(steps):
        x = tl.load(x_ptr + places)
        tl.store(x_ptr + places, x * 0.5 + 1.0)
