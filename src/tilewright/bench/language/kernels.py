"""Kernels that only the simulated machine runs: plain functions of the language."""

from typing import Any

from tilewright import language as tl


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
