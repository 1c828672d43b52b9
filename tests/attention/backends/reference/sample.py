"""Small flows of every kind, a model whose keys depend on the whole prefix, and a driver."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.abs import BranchSpec
from tilewright.attention.backends.reference import Session, SessionSpec, Suspended
from tilewright.attention.flow import FieldSpec, FlowBase, trace_flow, vFlow, vFlowMLA
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph
from tilewright.attention.indexer import AttentionMass, PageAge, PromptMass
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved

Floats = npt.NDArray[np.float32]

PAGE, GROUP, DIM = 4, 2, 8
LAYERS, HEADS = 2, 2


class Centroid(vFlow):
    """The mean query against the mean key."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        del block_size
        return {"centroid": (1, head_dim)}

    def forward_cache(self, cache: Any, loc: Any, ctx: Any) -> None:
        del loc, ctx
        cache["centroid"] = cache["k"].mean(1)

    def score(self, q: Any, cache: Any) -> Any:
        return cache["centroid"] @ q.mean(1).T

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        o.select(self.score(q, cache).topk())


class Running(Centroid):
    """State that starts from the page and remembers every step."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        return {**super().create_cache(block_size, head_dim), "running": (1, 1)}

    def forward_cache(self, cache: Any, loc: Any, ctx: Any) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["running"] = cache["v"].l2norm(2).mean(1)

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        cache["running"] = cache["running"] * 0.5 + self.score(q, cache)
        o.select((cache["running"] * 0.5 + self.score(q, cache)).topk())


class PartialRunning(Running):
    """The same, with the unfinished page summarised too."""

    partial_pages = True


class Heavy(vFlow):
    """Pages that attention liked before, and the prompt's last queries too."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        del block_size, head_dim
        return {"heat": FieldSpec((1, GROUP), initial=0.125)}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del q
        heat = cache["heat"] + AttentionMass()(ctx=ctx) + PromptMass(3)(ctx=ctx)
        cache["heat"] = heat
        o.select(heat.max(2).topk())


class PerHead(Centroid):
    """Every query head its own pages."""

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        o.select((cache["centroid"] @ q.T).topk(per_head=True))


class Branches(Centroid):
    """A gated window beside the best pages with an estimate of the rest."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        return {**super().create_cache(block_size, head_dim), "value": (1, head_dim)}

    def forward_cache(self, cache: Any, loc: Any, ctx: Any) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["value"] = cache["v"].mean(1)

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        gate = q.mean(2).sigmoid()
        logits = (cache["centroid"] @ q.T) * DIM**-0.5
        best = self.score(q, cache).topk()
        values = cache["value"] * 1.0
        window = PageAge()(ctx=ctx) < 2
        o.combine(
            [
                BranchSpec(best, gate=gate, logits=logits, values=values),
                BranchSpec(window, gate=1.0 - gate),
            ]
        )


class Mass(Centroid):
    """As many pages as hold most of the estimated mass."""

    P = 0.75

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        o.select(self.score(q, cache).softmax(0).top_p(self.P))


class Latent(vFlowMLA):
    """The mean query against the mean latent."""

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        del block_size
        return {"centroid": (1, kv_lora_rank + qk_rope_head_dim)}

    def forward_cache(self, cache: Any, loc: Any, ctx: Any) -> None:
        del loc, ctx
        cache["centroid"] = cache["latent"].mean(1)

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        o.select((cache["centroid"] @ q.mean(1).T).topk())


FLOWS: Mapping[str, Callable[[], FlowBase]] = {
    "centroid": Centroid,
    "running": Running,
    "partial": PartialRunning,
    "heavy": Heavy,
    "per_head": PerHead,
    "branches": Branches,
    "mass": Mass,
    "latent": Latent,
}
PLANNED = ("centroid", "running", "partial", "heavy", "per_head", "latent")
"""Flows that read every page if the plan lets them."""


def geometry_of(flow: FlowBase, dtype: DType = DType.FLOAT32) -> Geometry:
    sizes = {"page_size": PAGE, "query_heads": GROUP}
    dtypes = {"kv_dtype": dtype, "query_dtype": dtype, "field_dtype": dtype}
    if flow.kind is FlowKind.MLA:
        return Geometry.mla(kv_lora_rank=DIM - 2, qk_rope_head_dim=2, **sizes, **dtypes)  # type: ignore[arg-type]
    return Geometry.gqa(head_dim=DIM, **sizes, **dtypes)  # type: ignore[arg-type]


def graph_of(name: str, dtype: DType = DType.FLOAT32) -> Graph:
    flow = FLOWS[name]()
    return trace_flow(flow, geometry_of(flow, dtype), name=name)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Keys, values and queries of one token in one layer, from the tokens before it."""

    kind: FlowKind
    heads: int

    def of(self, prefix: Sequence[int], layer: int) -> tuple[Floats, Floats | None, Floats]:
        code = zlib.crc32(np.asarray(prefix, dtype=np.int64).tobytes())
        rng = np.random.default_rng((code, layer))
        key, value = (rng.normal(size=(self.heads, DIM)).astype(np.float32) for _ in range(2))
        query = rng.normal(size=(self.heads, GROUP, DIM)).astype(np.float32) * 2
        return key, None if self.kind is FlowKind.MLA else value, query


@dataclass
class Driver:
    """Runs requests through a session the way a model would."""

    flow: str
    namespace: str = "numpy"
    topk: int = 2
    page_order: Sequence[int] | None = None
    plan: PlanSpec | None = None
    dtype: DType = DType.FLOAT32
    num_pages: int = 64
    blocks_per_page: int = 1
    update_interval: int = 1
    sequences: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = graph_of(self.flow, self.dtype)
        heads = 1 if self.graph.geometry.kind is FlowKind.MLA else HEADS
        self.tokens = Tokens(self.graph.geometry.kind, heads)
        plan = self.plan or PlanSpec(budget=DefaultBudget(self.topk), reserved=Reserved(1, 1))
        spec = SessionSpec(
            num_kv_heads=heads,
            num_pages=self.num_pages,
            num_layers=LAYERS,
            blocks_per_page=self.blocks_per_page,
            plan=plan,
            update_interval=self.update_interval,
        )
        self.session = Session(
            self.graph, spec, namespace=self.namespace, page_order=self.page_order
        )

    def start(self, name: str, prompt: Sequence[int], chunk: int = 1000) -> int:
        """Admit and prefill; returns the tokens that the prefix index had."""
        hit = self.session.admit(name, prompt).hit_tokens
        self.sequences[name] = list(prompt[:hit])
        self.prefill(name, prompt[hit:], chunk)
        return hit

    def resume(self, name: str, suspended: Suspended, chunk: int = 1000) -> int:
        hit = self.session.resume(name, suspended).hit_tokens
        self.sequences[name] = list(suspended.tokens[:hit])
        self.prefill(name, suspended.tokens[hit:], chunk)
        return hit

    def prefill(self, name: str, tokens: Sequence[int], chunk: int = 1000) -> list[Floats]:
        """Outputs of the prompt by layer, all chunks together."""
        found: list[list[Floats]] = [[] for _ in range(LAYERS)]
        for start in range(0, len(tokens), chunk):
            part = tokens[start : start + chunk]
            step = self.session.begin({name: part}, prompt=True)
            self.sequences[name] += part
            for layer in range(LAYERS):
                keys, values, queries = self.data(name, layer, len(part))
                step.write(layer, name, keys, values)
                found[layer].append(np.asarray(step.attend_dense(layer, name, queries).output))
                if start + chunk >= len(tokens):
                    _, _, last = self.data(name, layer, min(3, len(self.sequences[name])))
                    step.observe(layer, name, last)
            step.finish()
            self.session.check_integrity()
        return [np.concatenate(parts) for parts in found]

    def decode(self, tokens: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        """One step; results by request and layer."""
        step = self.session.begin(tokens)
        for name, added in tokens.items():
            self.sequences[name] += added
        found: dict[str, list[Any]] = {name: [] for name in tokens}
        for layer in range(LAYERS):
            queries = {}
            for name, added in tokens.items():
                keys, values, queries[name] = self.data(name, layer, len(added))
                step.write(layer, name, keys, values)
            for name, result in step.attend(layer, queries).items():
                found[name].append(result)
        step.finish()
        self.session.check_integrity()
        return found

    def outputs(self, name: str, tokens: Sequence[int]) -> list[Floats]:
        """Outputs of both layers for tokens that are decoded one after the other."""
        return [
            np.asarray(result.output)[0]
            for token in tokens
            for result in self.decode({name: [token]})[name]
        ]

    def data(self, name: str, layer: int, count: int) -> tuple[Floats, Floats | None, Floats]:
        """Keys, values and queries of the last tokens of a sequence."""
        sequence = self.sequences[name]
        first = len(sequence) - count
        rows = [self.tokens.of(sequence[: i + 1], layer) for i in range(first, len(sequence))]
        keys, values, queries = (list(part) for part in zip(*rows, strict=True))
        stacked = None if values[0] is None else np.stack(values)
        return np.stack(keys), stacked, np.stack(queries)


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Equal bit for bit, and finite."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(left, right, strict=True)]
    return all(np.array_equal(a, b) and bool(np.all(np.isfinite(a))) for a, b in pairs)
