"""Attention of a prompt: blocks of queries over the cubes, KV heads over the PEs of a cube."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tilewright import language as tl
from tilewright.host import LocalShard, LocalSize, RuntimeContext, Split
from tilewright.programs.attention import (
    HeadDim,
    KvHeads,
    QHeads,
    attend,
    attention_by_head,
    begin_softmax,
    collect_tokens,
    deal_tokens,
    end_softmax,
    heads_of,
    in_log2,
    num_pairs,
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
from tilewright.programs.parameter import ProgramFit, fit_team


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
    queries = [in_log2(tl.load(q_ptr + g * size, shape=shape), scale) for g in range(group)]
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


@dataclass(frozen=True, slots=True)
class QueryBlocks:
    """Queries in blocks, dealt to cubes in serpentines; blocks behind the last query are empty."""

    length: int
    size: int
    num_cubes: int

    @property
    def num_tiles(self) -> int:
        """Blocks of a cube."""
        return -(-self.length // (self.size * self.num_cubes))

    def of_cubes(self) -> Array:
        """Return (cubes, tiles): which block each one is."""
        num_cubes, tiles = self.num_cubes, range(self.num_tiles)
        return np.array(
            [[query_block(tile, cube, num_cubes) for tile in tiles] for cube in range(num_cubes)]
        )

    def seen_keys(self, *, causal: bool) -> list[int]:
        """Return how many keys the queries of each cube see together."""
        if not causal:
            return [self.length] * self.num_cubes
        starts = self.of_cubes() * self.size
        ends = np.where(starts < self.length, np.minimum(starts + self.size, self.length), 0)
        seen: list[int] = ends.max(axis=1).tolist()
        return seen


def _run(
    torch: RuntimeContext,
    length: Annotated[int, "tokens of the prompt"] = 512,
    q_heads: QHeads = 32,
    kv_heads: KvHeads = 8,
    head_dim: HeadDim = 128,
    causal: Annotated[bool, "a query sees no later key"] = True,
    block: Annotated[int, "queries of a head that are in the TCM at a time"] = 64,
    key_block: Annotated[int, "keys that are loaded at a time"] = 128,
    cubes: Cubes = 4,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("flash_attention", length=length, block=block, key_block=key_block)
    heads = heads_of("flash_attention", q_heads, kv_heads, head_dim)
    team, draw = team_of(torch, cubes=cubes, pes=pes).at_most(pes=heads.kv), Draw(torch)
    blocks = QueryBlocks(length, block, team.num_cubes)
    table = blocks.of_cubes()
    draw.check_room((heads.kv, heads.group, table.size * block, heads.dim), np.float16)
    queries = draw.normal((heads.kv, heads.group, length, heads.dim), "f16")
    keys, values = (draw.normal((heads.kv, length, heads.dim), "f16") for _ in range(2))
    dealt = deal_tokens(queries, table, block)
    by_cube, by_head = team.policy(cube=Split(0), pe=Split(1)), team.policy(pe=Split(0))
    q = deploy(torch, "q", dealt, by_cube)
    k, v = deploy(torch, "k", keys, by_head), deploy(torch, "v", values, by_head)
    out = reserve(torch, "out", dealt.shape, "f16", by_cube)
    report = torch.launch(
        prefill_kernel, *map(LocalShard, (q, k, v, out)),
        LocalSize(k, 0), blocks.num_tiles, heads.group, block,
        length, heads.dim, key_block, heads.scale, causal,
    ).report  # fmt: skip
    num_keys = sum(blocks.seen_keys(causal=causal))  # every cube reads those that its queries see
    pairs = num_pairs(length, causal=causal)
    has_all = (team.num_cubes - 1) * block < length  # every cube has queries
    work = heads.work(team.num_pes, queries=length, tokens=num_keys, pairs=pairs)
    return measured(
        torch,
        report,
        work,
        lambda: row_error(
            collect_tokens(out.numpy(timed=False), table, length),
            attention_by_head(queries, keys, values, causal=causal),
        ),
        path=Path(pes=report.pes, all_store=has_all),
    )


PROGRAMS = (
    BenchProgram(
        "flash_attention",
        "attention of a prompt with grouped heads, causal or not, over cubes",
        _run,
        fit=ProgramFit(
            counts=fit_team, tiles=(("block", "key_block"), ("head_dim",)), sizes=(("length",),)
        ),
    ),
)
