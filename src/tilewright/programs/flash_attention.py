"""Attention of a prompt: blocks of queries over the cubes, KV heads over the PEs of a cube."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tilewright.host import LocalShard, LocalSize, RuntimeContext, Split
from tilewright.programs.attention_reference import attention
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw
from tilewright.programs.fit import ProgramFit, fit_team
from tilewright.programs.heads import HeadDim, Heads, KvHeads, QHeads, heads_of
from tilewright.programs.kernels.attention import prefill_kernel, query_block
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_sizes
from tilewright.programs.team import Array, Cubes, Pes, Team, deploy, reserve, team_of


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

    @property
    def fill_cubes(self) -> bool:
        """Whether every cube has queries."""
        return (self.num_cubes - 1) * self.size < self.length

    def of_cubes(self) -> Array:
        """(cubes, tiles): which block each one is."""
        num_cubes, tiles = self.num_cubes, range(self.num_tiles)
        return np.array(
            [[query_block(tile, cube, num_cubes) for tile in tiles] for cube in range(num_cubes)]
        )

    def deal(self, queries: Array) -> Array:
        """(kv, group, length, dim) as (cubes, kv, tiles, group, size, dim)."""
        kv, group, _, dim = queries.shape
        num_blocks = self.num_cubes * self.num_tiles
        padded = np.zeros((kv, group, num_blocks * self.size, dim), queries.dtype)
        padded[:, :, : self.length] = queries
        blocks = padded.reshape(kv, group, num_blocks, self.size, dim)
        return blocks[:, :, self.of_cubes()].transpose(2, 0, 3, 1, 4, 5)

    def collect(self, dealt: Array) -> Array:
        """Back again."""
        _, kv, _, group, _, dim = dealt.shape
        blocks = np.empty((kv, group, self.of_cubes().size, self.size, dim), dealt.dtype)
        blocks[:, :, self.of_cubes()] = dealt.transpose(1, 3, 0, 2, 4, 5)
        return blocks.reshape(kv, group, -1, dim)[:, :, : self.length]

    def seen_keys(self, *, causal: bool) -> list[int]:
        """How many keys the queries of each cube see together."""
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
    padded = team.num_cubes * blocks.num_tiles * block
    draw.check_room((heads.kv, heads.group, padded, heads.dim), np.float16)
    queries = draw.normal((heads.kv, heads.group, length, heads.dim), "f16")
    keys, values = (draw.normal((heads.kv, length, heads.dim), "f16") for _ in range(2))
    dealt = blocks.deal(queries)
    by_cube = team.policy(cube=Split(0), pe=Split(1))
    q = deploy(torch, "q", dealt, by_cube)
    k, v = (
        deploy(torch, name, array, team.policy(pe=Split(0)))
        for name, array in (("k", keys), ("v", values))
    )
    out = reserve(torch, "out", dealt.shape, "f16", by_cube)
    report = torch.launch(
        prefill_kernel, *map(LocalShard, (q, k, v, out)),
        LocalSize(k, 0), blocks.num_tiles, heads.group, block,
        length, heads.dim, key_block, heads.scale, causal,
    ).report  # fmt: skip
    return measured(
        torch,
        (report,),
        bound_of(
            torch.machine,
            _work(heads, blocks, team, causal=causal),
            Path(pes=report.pes, all_store=blocks.fill_cubes),
        ),
        error=lambda: row_error(
            blocks.collect(out.numpy(timed=False)), _expected(queries, keys, values, causal=causal)
        ),
        tolerance=tolerance_of("f16"),
    )


def _work(heads: Heads, blocks: QueryBlocks, team: Team, *, causal: bool) -> Work:
    """Every cube reads the keys that its queries see."""
    length = blocks.length
    num_pairs = length * (length + 1) // 2 if causal else length**2
    num_keys = sum(blocks.seen_keys(causal=causal))
    return Work(
        num_pes=team.num_pes,
        read_bytes=length * heads.query_bytes + num_keys * heads.token_bytes,
        written_bytes=length * heads.query_bytes,
        flop={"f16": heads.flop(num_pairs)},
        elements=heads.elements(num_pairs),
    )


def _expected(queries: Array, keys: Array, values: Array, *, causal: bool) -> Array:
    places = np.arange(queries.shape[2])
    visible = places[:, None] >= places[None, :] if causal else None
    rows = zip(queries, keys, values, strict=True)
    return np.stack([attention(q, k, v, visible=visible) for q, k, v in rows])


FLASH_ATTENTION = BenchProgram(
    "flash_attention",
    "attention of a prompt with grouped heads, causal or not, over cubes",
    _run,
    fit=ProgramFit(
        counts=fit_team, tiles=(("block", "key_block"), ("head_dim",)), sizes=(("length",),)
    ),
)
