"""Flows whose scores come from learned tables: given by the caller, or random ones that say so."""

import math
import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Parameter, Value
from tilewright.attention.cache import Concat, LearnedDescriptor
from tilewright.attention.cache import GeMM as CacheGeMM
from tilewright.attention.flow import register
from tilewright.attention.flows.centroid import RopeAwareBlockSparseMLA
from tilewright.attention.flows.ready import Ready, ScoredFlow, ScoredFlowMLA
from tilewright.attention.graph import Geometry
from tilewright.attention.indexer import FactorScore, GeMM
from tilewright.errors import FlowInitError

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

Tables = Mapping[str, npt.ArrayLike] | None
"""What a caller gives: a table by its name, or nothing."""


class Weights:
    """Tables by name. What is not given is drawn from ``seed``: right in shape, without quality.

    >>> Weights(None, seed=3).label
    'seeded random (seed 3)'
    """

    def __init__(self, given: Tables, *, seed: int = 0) -> None:
        self._given = None if given is None else dict(given)
        self._seed = seed
        self._tables: dict[tuple[str, tuple[int, ...]], Parameter] = {}

    @property
    def label(self) -> str:
        """For every result: whether these weights were learned or drawn."""
        return f"seeded random (seed {self._seed})" if self._given is None else "given"

    def matrix(self, name: str, rows: int, columns: int) -> Parameter:
        """[rows, columns] for all layers, or given as [layers, rows, columns]."""
        return self._kept(name, (rows, columns), layers=False)

    def by_head(self, name: str, heads: int, rows: int, columns: int) -> Parameter:
        """[layers, heads, rows, columns]; a drawn one has layer 0 only."""
        return self._kept(name, (heads, rows, columns), layers=True)

    def _kept(self, name: str, shape: tuple[int, ...], *, layers: bool) -> Parameter:
        """One object for a name and shape: a graph tells parameters by their identity."""
        if (name, shape) not in self._tables:
            self._tables[name, shape] = self._table(name, shape, layers=layers)
        return self._tables[name, shape]

    def _table(self, name: str, shape: tuple[int, ...], *, layers: bool) -> Parameter:
        if self._given is None:
            # normal, with a variance that keeps the size of what it multiplies
            generator = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
            drawn = generator.standard_normal(shape, dtype=np.float32)
            drawn *= np.float32(1.0 / math.sqrt(shape[-1]))
            return Parameter(drawn[None] if layers else drawn)
        if name not in self._given:
            expected = f"a table {name!r} of shape {shape}"
            fix = "give every table, or none for seeded random ones"
            raise FlowInitError("weights", f"tables {sorted(self._given)}", expected, fix)
        table = np.asarray(self._given[name], dtype=np.float32)
        if table.shape[-len(shape) :] != shape or table.ndim - len(shape) not in (int(layers), 1):
            expected = f"{'[layers] + ' if layers else ''}{list(shape)}"
            fix = "weights must fit the sizes of the model"
            raise FlowInitError(f"weights {name!r}", f"shape {list(table.shape)}", expected, fix)
        return Parameter(table)


class Learned(Ready):
    """A flow with tables of weights, and products with them."""

    def __init__(self, weights: Tables, seed: int) -> None:
        super().__init__()
        self.weights = Weights(weights, seed=seed)
        self.weights_label = self.weights.label
        self.product = GeMM()


@register("seer_attention")
class SeerAttention(Learned, ScoredFlow):
    """score(P) = Q' . K'_P.

    A gate on pooled keys: K'_P = Wk [max; min; mean of the keys of P], Q' = Wq q_flat merges the
    group. The plan's number of pages is read, or with a ``threshold`` those whose share
    softmax(score / sqrt(d)) among the middle pages reaches it. The published gate pools keys before
    their rotation; this one pools them as they are cached.

    Tables: ``query`` [d, H * D] and ``key`` [d, 3 D].
    """

    paper = "SeerAttention-R: Sparse Attention Adaptation for Long Reasoning (2506.08889)"
    group = "learned merge of queries"

    def __init__(
        self,
        gate_width: int = 128,
        threshold: float | None = None,
        weights: Tables = None,
        seed: int = 0,
    ) -> None:
        super().__init__(weights, seed)
        self.gate_width = gate_width
        self.threshold = threshold

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        self.width = head_dim
        return {"gate_key": (1, self.gate_width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        keys = cache["k"]
        pooled = Concat(dim=2)(keys.max(1), keys.min(1), keys.mean(1), ctx=ctx)
        table = self.weights.matrix("key", self.gate_width, 3 * self.width)
        cache["gate_key"] = CacheGeMM()(pooled, table, None, ctx=ctx).T

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        size = q.shape[1] * q.shape[2]
        table = self.weights.matrix("query", self.gate_width, size)
        return cache["gate_key"] @ self.product(q.reshape(1, size), table)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        score = self.score(q, cache, ctx)
        if self.threshold is None:
            o.select(score.topk())
        else:
            shares = score.softmax(dim=0, scale=1.0 / math.sqrt(self.gate_width))
            o.select(shares.threshold(self.threshold))


@register("dsa")
class DSA(Learned, ScoredFlowMLA):
    """score(P) = max over tokens s of P of sum_j w_j relu(q_j . k_s).

    The lightning indexer of DeepSeek sparse attention: every token has a small index key,
    k_s = Wk latent_s, and there are index heads j with q = Wq q_flat, w = Ww q_flat. With pages of
    one token this is the published rule; a larger page is as good as its best token.

    Tables: ``query`` [index heads * index width, heads * latent], ``head`` [index heads, heads *
    latent], ``key`` [index width, latent].
    """

    paper = "DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek Sparse Attention"
    group = "learned index heads"

    def __init__(
        self,
        index_heads: int = 64,
        index_width: int = 128,
        weights: Tables = None,
        seed: int = 0,
    ) -> None:
        super().__init__(weights, seed)
        self.index_heads = index_heads
        self.index_width = index_width

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        self.width = kv_lora_rank + qk_rope_head_dim
        return {"index_keys": (block_size, self.index_width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        table = self.weights.matrix("key", self.index_width, self.width)
        cache["index_keys"] = CacheGeMM()(cache["latent"], table, None, ctx=ctx).T

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        size = q.shape[1] * q.shape[2]
        flat = q.reshape(1, size)
        query_table = self.weights.matrix("query", self.index_heads * self.index_width, size)
        queries = self.product(flat, query_table).reshape(self.index_heads, self.index_width)
        weights = self.product(flat, self.weights.matrix("head", self.index_heads, size)).T
        return ((cache["index_keys"] @ queries.T).relu() * weights).sum(2).max(1)


@register("learned_factorized_block_sparse_mla")
class LearnedFactorizedBlockSparseMLA(Learned, ScoredFlowMLA):
    """score(P) = sum_h max_m <Wq_h^T q_h, g_hm>.

    A page with latents X keeps g_h = (Wt_h^T X) Wk_h, m descriptors of width r for head h.

    Tables are ``query`` and ``key`` [layers, heads, latent, rank] and ``token`` [layers, heads,
    block size, descriptors].
    """

    paper = "a learned rule of Vortex (2606.06453)"
    group = "sum over heads of the best descriptor"

    def __init__(
        self,
        descriptors: int = 2,
        rank: int = 16,
        weights: Tables = None,
        seed: int = 0,
    ) -> None:
        super().__init__(weights, seed)
        self.descriptors = descriptors
        self.rank = rank
        self.num_heads = 1

    def initialize_for(self, geometry: Geometry) -> None:
        self.num_heads = geometry.query_heads  # descriptors are kept for each of them
        super().initialize_for(geometry)

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        self.sizes = (block_size, kv_lora_rank + qk_rope_head_dim)
        return {"descriptors": (self.num_heads * self.descriptors, self.rank)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        block_size, width = self.sizes
        token = self.weights.by_head("token", self.num_heads, block_size, self.descriptors)
        key = self.weights.by_head("key", self.num_heads, width, self.rank)
        describe = LearnedDescriptor(token, key, self.num_heads, self.descriptors, self.rank)
        describe(cache["latent"], cache["descriptors"], loc=loc, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        query = self.weights.by_head("query", self.num_heads, q.shape[2], self.rank)
        factor = FactorScore(query, self.num_heads, self.descriptors, self.rank)
        return factor(q, cache["descriptors"], ctx=ctx)


@register("learned_block_sparse_mla")
class LearnedBlockSparseMLA(RopeAwareBlockSparseMLA):
    """score(P) = <W q_flat, c_P>.

    q_flat are all heads in a row; W [latent, heads * latent] folds the learned projections of
    queries and keys. Without weights W is made of identities, which is the sum over heads and
    nothing learned.

    Table ``query`` is [latent, heads * latent], or has layers first.
    """

    group = "learned mixture of queries"

    def __init__(self, weights: Tables = None) -> None:
        super().__init__()
        self.given = weights
        self.mixture = GeMM()

    @property
    def weights_label(self) -> str:
        return "identity, the sum over heads" if self.given is None else "given"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        _, heads, width = q.shape
        if self.given is None:
            table = Parameter(np.tile(np.eye(width, dtype=np.float32), (1, heads)))
        else:
            table = Weights(self.given).matrix("query", width, heads * width)
        return cache["centroids"] @ self.mixture(q.reshape(1, heads * width), table)
