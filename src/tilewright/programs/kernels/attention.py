"""Attention of grouped query heads: prefill over blocks of queries, decode over ragged rows."""

from typing import Any

from tilewright import language as tl
from tilewright.programs.kernels.softmax_state import (
    LOG2_E,
    attend,
    begin_softmax,
    end_softmax,
)


def query_block(tile: int, cube: int, num_cubes: int) -> int:
    """Which block of queries a cube has as its ``tile``-th: in serpentines, so that all cubes see
    about as many keys under a causal mask.
    """
    return tile * num_cubes + (cube if tile % 2 == 0 else num_cubes - 1 - cube)


def prefill_kernel(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, out_ptr: Any,
    kv_heads: int, tiles: int, group: int, block: int,
    length: int, head_dim: int, key_block: int, scale: float, causal: bool,
) -> None:  # fmt: skip
    """q and out: (kv_heads, tiles, group, block, head_dim); k and v: (kv_heads, length, head_dim).

    The heads of a group share the keys and values that are loaded for a block of queries.
    """
    cube, num_cubes = tl.program_id("cube"), tl.num_programs("cube")
    for head in range(kv_heads):
        keys = head * length * head_dim
        for tile in range(tiles):
            first_query = query_block(tile, cube, num_cubes) * block
            if first_query < length:
                queries = (head * tiles + tile) * group * block * head_dim
                end = min(first_query + block, length) if causal else length
                _prefill_tile(
                    q_ptr + queries, k_ptr + keys, v_ptr + keys, out_ptr + queries,
                    first_query, end, group, block, head_dim, key_block, scale, causal,
                )  # fmt: skip


def _prefill_tile(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, out_ptr: Any, first_query: int, end: int,
    group: int, block: int, head_dim: int, key_block: int, scale: float, causal: bool,
) -> None:  # fmt: skip
    shape = (block, head_dim)
    size = block * head_dim
    queries = [_scaled(tl.load(q_ptr + g * size, shape=shape), scale) for g in range(group)]
    states = [begin_softmax(block, head_dim) for _ in range(group)]
    for first_key in range(0, end, key_block):
        num_keys = min(key_block, end - first_key)
        place = first_key * head_dim
        k = tl.trans(tl.load(k_ptr + place, shape=(num_keys, head_dim)))
        v = tl.load(v_ptr + place, shape=(num_keys, head_dim))
        for g in range(group):
            scores = tl.dot(queries[g], k)
            if causal and first_key + num_keys > first_query + 1:
                rows, columns = tl.arange(0, block)[:, None], tl.arange(0, num_keys)[None, :]
                visible = first_query + rows >= first_key + columns
                scores = tl.where(visible, scores, -float("inf"))
            states[g] = attend(states[g], scores, v)
    for g in range(group):
        out = end_softmax(states[g]).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + g * size, out)


def decode_kernel(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, starts_ptr: Any, out_ptr: Any,
    kv_heads: int, slots: int, group: int,
    capacity: int, head_dim: int, key_block: int, scale: float,
) -> None:  # fmt: skip
    """One token of each request. q and out: (kv_heads, slots, group, head_dim); k and v: (kv_heads,
    capacity, head_dim), in which slot s has the tokens from starts[s] up to starts[s + 1].
    """
    loaded = [tl.load(starts_ptr + slot) for slot in range(slots + 1)]
    starts = [int(start) for start in loaded]
    shape = (group, head_dim)
    for head in range(kv_heads):
        for slot in range(slots):
            row = (head * slots + slot) * group * head_dim
            q = _scaled(tl.load(q_ptr + row, shape=shape), scale)
            state = begin_softmax(group, head_dim)
            for first in range(starts[slot], starts[slot + 1], key_block):
                num_keys = min(key_block, starts[slot + 1] - first)
                place = (head * capacity + first) * head_dim
                k = tl.load(k_ptr + place, shape=(num_keys, head_dim))
                v = tl.load(v_ptr + place, shape=(num_keys, head_dim))
                state = attend(state, tl.dot(q, tl.trans(k)), v)
            if starts[slot] < starts[slot + 1]:
                out = end_softmax(state).to(out_ptr.dtype.element_ty)
                tl.store(out_ptr + row, out)


def _scaled(q: Any, scale: float) -> Any:
    return (q * (scale * LOG2_E)).to(q.dtype)
