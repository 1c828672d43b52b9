"""Attention of one token a request: requests over cubes, KV heads over the PEs of a cube."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tilewright.errors import BenchError
from tilewright.host import LaunchReport, LocalShard, LocalSize, RuntimeContext, Split, Tensor
from tilewright.programs.attention_reference import attention
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw
from tilewright.programs.fit import Changes, Offer, ProgramFit, Values, fit_team
from tilewright.programs.heads import HeadDim, Heads, KvHeads, QHeads, heads_of
from tilewright.programs.kernels.attention import decode_kernel
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_sizes
from tilewright.programs.team import Array, Cubes, Pes, Team, deploy, reserve, team_of


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
        """(cubes, slots + 1): where each slot's tokens begin, and where the last one's end."""
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
    """Longest first, each to the cube that has fewest tokens; the lowest of equals."""
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
    _check(requests, min_length, max_length, key_block)
    heads = heads_of("decode_attention", q_heads, kv_heads, head_dim)
    team = team_of(torch, cubes=cubes, pes=pes).at_most(pes=heads.kv)
    draw = Draw(torch)
    draw.check_room((requests, max_length), np.int8)
    lengths = draw.integers.integers(min_length, max_length, requests, endpoint=True)
    batch = deal_requests(lengths, team.num_cubes)
    cache = _draw_cache(draw, heads, batch)
    out, report = _launch(torch, team, heads, batch, cache, key_block)
    work = Work(
        num_pes=team.num_pes,
        read_bytes=requests * heads.query_bytes + batch.num_tokens * heads.token_bytes,
        written_bytes=requests * heads.query_bytes,
        flop={"f16": heads.flop(batch.num_tokens)},
        elements=heads.elements(batch.num_tokens),
    )
    return measured(
        torch,
        (report,),
        bound_of(
            torch.machine,
            work,
            Path(pes=report.pes, loads=2, all_store=all(batch.lengths)),  # keys by their starts
        ),
        error=lambda: row_error(out.numpy(timed=False), _expected(batch, cache)),
        tolerance=tolerance_of("f16"),
        notes=(f"{batch.num_tokens} tokens, {batch.capacity} of them on the fullest cube",),
    )


def _check(requests: int, min_length: int, max_length: int, key_block: int) -> None:
    check_sizes("decode_attention", requests=requests, min_length=min_length, key_block=key_block)
    if max_length < min_length:
        found, expected = f"max_length={max_length}", f"at least min_length={min_length}"
        raise BenchError("decode_attention", found, expected, "set it higher")


def _draw_cache(draw: Draw, heads: Heads, batch: Batch) -> _Cache:
    rows = (len(batch.lengths), heads.kv)
    queries = draw.normal((*rows, batch.num_slots, heads.group, heads.dim), "f16")
    keys, values = (draw.normal((*rows, batch.capacity, heads.dim), "f16") for _ in range(2))
    return _Cache(queries, keys, values)


def _launch(
    torch: RuntimeContext, team: Team, heads: Heads, batch: Batch, cache: _Cache, key_block: int
) -> tuple[Tensor, LaunchReport]:
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
    return out, report


def _expected(batch: Batch, cache: _Cache) -> Array:
    """Zero in slots that no request fills."""
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


def _counts(offer: Offer, values: Values) -> Changes:
    found = fit_team(offer, values)
    if int(values["min_length"]) > int(values["max_length"]):
        found["min_length"] = int(values["max_length"])
    return found


DECODE_ATTENTION = BenchProgram(
    "decode_attention",
    "attention of one token each of requests of uneven lengths, over cubes",
    _run,
    fit=ProgramFit(counts=_counts, tiles=(("key_block",), ("head_dim",)), sizes=(("max_length",),)),
)
