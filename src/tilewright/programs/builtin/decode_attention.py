"""Attention of one token a request: requests over cubes, KV heads over the PEs of a cube."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tilewright import language as tl
from tilewright.errors import BenchError
from tilewright.host import LocalShard, LocalSize, RuntimeContext, Split
from tilewright.programs.attention import (
    HeadDim,
    KvHeads,
    QHeads,
    attend,
    attention,
    begin_softmax,
    end_softmax,
    heads_of,
    in_log2,
)
from tilewright.programs.bound import Path
from tilewright.programs.contract import BenchOutcome, BenchProgram, measured, row_error
from tilewright.programs.inputs import (
    Array,
    Cubes,
    Draw,
    Pes,
    check_sizes,
    deploy,
    reserve,
    team_of,
)
from tilewright.programs.parameter import ProgramFit, fit_below


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
            q = in_log2(tl.load(q_ptr + row, shape=shape), scale)
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


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests by cube; the tokens of a cube's requests lie one after the other."""

    lengths: tuple[tuple[int, ...], ...]  # of each cube's requests

    @property
    def num_slots(self) -> int:
        """Of a cube; those that no request fills have no tokens."""
        return max(map(len, self.lengths))

    @property
    def capacity(self) -> int:
        """Tokens of the cube that has most."""
        return max(map(sum, self.lengths))

    @property
    def num_tokens(self) -> int:
        return sum(map(sum, self.lengths))

    def starts(self) -> Array:
        """Return where each slot's tokens begin and the last one's end, (cubes, slots + 1)."""
        padded = [[*lengths, *[0] * (self.num_slots - len(lengths))] for lengths in self.lengths]
        ends = np.cumsum(padded, axis=1)
        return np.pad(ends, ((0, 0), (1, 0))).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Cache:
    """By cube and KV head: a query for each slot, keys and values of all tokens."""

    queries: Array  # (cubes, kv, slots, group, dim)
    keys: Array  # (cubes, kv, capacity, dim)
    values: Array


def deal_requests(lengths: Array, num_cubes: int) -> Batch:
    """Deal the longest first, each to the cube that has fewest tokens; the lowest of equals."""
    cubes: list[list[int]] = [[] for _ in range(num_cubes)]
    for length in sorted(lengths.tolist(), reverse=True):
        min(cubes, key=sum).append(length)
    return Batch(tuple(map(tuple, cubes)))


def _run(
    torch: RuntimeContext,
    requests: Annotated[int, "that decode one token each"] = 8,
    min_length: Annotated[int, "tokens of a request, at least"] = 64,
    max_length: Annotated[int, "tokens of a request, at most"] = 1024,
    q_heads: QHeads = 32,
    kv_heads: KvHeads = 8,
    head_dim: HeadDim = 128,
    key_block: Annotated[int, "keys that are loaded at a time"] = 128,
    cubes: Cubes = 4,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("decode_attention", requests=requests, min_length=min_length, key_block=key_block)
    if max_length < min_length:
        found, expected = f"max_length={max_length}", f"at least min_length={min_length}"
        raise BenchError("decode_attention", found, expected, "set it higher")
    heads = heads_of("decode_attention", q_heads, kv_heads, head_dim)
    team = team_of(torch, cubes=cubes, pes=pes).at_most(pes=heads.kv)
    draw = Draw(torch)
    draw.check_room((requests, max_length), np.int8)
    lengths = draw.integers.integers(min_length, max_length, requests, endpoint=True)
    batch = deal_requests(lengths, team.num_cubes)
    rows = (len(batch.lengths), heads.kv)
    queries = draw.normal((*rows, batch.num_slots, heads.group, heads.dim), "f16")
    tokens = (*rows, batch.capacity, heads.dim)
    cache = _Cache(queries, draw.normal(tokens, "f16"), draw.normal(tokens, "f16"))
    by_cube = team.policy(cube=Split(0), pe=Split(1))
    arrays = {"q": cache.queries, "k": cache.keys, "v": cache.values}
    q, k, v = (deploy(torch, name, array, by_cube) for name, array in arrays.items())
    starts = deploy(torch, "starts", batch.starts(), team.policy(cube=Split(0)))
    out = reserve(torch, "out", cache.queries.shape, "f16", by_cube)
    report = torch.launch(
        decode_kernel, *map(LocalShard, (q, k, v, starts, out)),
        LocalSize(k, 1), batch.num_slots, heads.group,
        batch.capacity, heads.dim, key_block, heads.scale,
    ).report  # fmt: skip
    num_tokens = batch.num_tokens
    work = heads.work(team.num_pes, queries=requests, tokens=num_tokens, pairs=num_tokens)
    return measured(
        torch,
        report,
        work,
        lambda: row_error(out.numpy(timed=False), _expected(batch, cache)),
        # keys by their starts
        path=Path(pes=report.pes, loads=2, all_store=all(batch.lengths)),
        notes=(f"{num_tokens} tokens, {batch.capacity} of them on the fullest cube",),
    )


def _expected(batch: Batch, cache: _Cache) -> Array:
    """Attend in float64; zero in slots that no request fills."""
    result = np.zeros(cache.queries.shape, np.float64)
    starts = batch.starts()
    for cube, lengths in enumerate(batch.lengths):
        for slot in range(len(lengths)):
            tokens = slice(starts[cube, slot], starts[cube, slot + 1])
            for head in range(cache.keys.shape[1]):
                row = (cube, head, slot)
                pair = (cache.keys[cube, head, tokens], cache.values[cube, head, tokens])
                result[row] = attention(cache.queries[row], *pair)
    return result


PROGRAMS = (
    BenchProgram(
        "decode_attention",
        "attention of one token each of requests of uneven lengths, over cubes",
        _run,
        fit=ProgramFit(
            counts=fit_below("min_length", "max_length"),
            tiles=(("key_block",), ("head_dim",)),
            sizes=(("max_length",),),
        ),
    ),
)
