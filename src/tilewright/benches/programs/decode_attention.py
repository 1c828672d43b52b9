"""Attention of one token a request: requests over cubes, KV heads over the PEs of a cube."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tilewright.benches.programs.attention_reference import attention
from tilewright.benches.programs.bound import Work
from tilewright.benches.programs.check import row_error, tolerance_of
from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.draw import Draw
from tilewright.benches.programs.heads import HeadDim, KvHeads, QHeads, heads_of
from tilewright.benches.programs.kernels.attention import decode_kernel
from tilewright.benches.programs.measure import measured
from tilewright.benches.programs.team import Array, Cubes, Pes, deploy, reserve, team_of
from tilewright.errors import BenchError
from tilewright.host import LocalShard, LocalSize, RuntimeContext, Split

__all__ = ("DECODE_ATTENTION", "Batch", "deal_requests")


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
    heads = heads_of("decode_attention", q_heads, kv_heads, head_dim)
    team = team_of(torch, cubes=cubes, pes=pes).at_most(pes=heads.kv)
    draw = Draw(torch)
    _check(requests, min_length, max_length)
    lengths = draw.integers.integers(min_length, max_length, requests, endpoint=True)
    batch = deal_requests(lengths, team.num_cubes)
    rows = (team.num_cubes, heads.kv)
    queries = draw.normal((*rows, batch.num_slots, heads.group, heads.dim), "f16")
    keys, values = (draw.normal((*rows, batch.capacity, heads.dim), "f16") for _ in range(2))
    by_cube = team.policy(cube=Split(0), pe=Split(1))
    q, k, v = (
        deploy(torch, name, array, by_cube)
        for name, array in (("q", queries), ("k", keys), ("v", values))
    )
    starts = deploy(torch, "starts", batch.starts(), team.policy(cube=Split(0)))
    out = reserve(torch, "out", queries.shape, "f16", by_cube)
    report = torch.launch(
        decode_kernel, *map(LocalShard, (q, k, v, starts, out)),
        LocalSize(k, 1), batch.num_slots, heads.group,
        batch.capacity, heads.dim, key_block, heads.scale,
    ).report  # fmt: skip
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
        work,
        error=lambda: row_error(out.numpy(), _expected(batch, queries, keys, values)),
        tolerance=tolerance_of("f16"),
        notes=(f"{batch.num_tokens} tokens; {max(map(sum, batch.lengths))} on the fullest cube",),
    )


def _check(requests: int, min_length: int, max_length: int) -> None:
    if requests < 1 or not 1 <= min_length <= max_length:
        found = f"{requests} requests of {min_length} to {max_length} tokens"
        expected = "at least one request, and lengths from 1 up"
        raise BenchError("decode_attention", found, expected, "correct the sizes")


def _expected(batch: Batch, queries: Array, keys: Array, values: Array) -> Array:
    """Zero in slots that no request fills."""
    result = np.zeros(queries.shape, np.float64)
    starts = batch.starts()
    for cube, lengths in enumerate(batch.lengths):
        for slot in range(len(lengths)):
            tokens = slice(starts[cube, slot], starts[cube, slot + 1])
            for head in range(keys.shape[1]):
                row = (cube, head, slot)
                pair = (keys[cube, head, tokens], values[cube, head, tokens])
                result[row] = attention(queries[row], *pair)
    return result


DECODE_ATTENTION = BenchProgram(
    "decode_attention",
    "attention of one token each of requests of uneven lengths, over cubes",
    _run,
)
