"""Pages by their mean key or mean latent.

c_P = mean key (or latent) of page P; the plain score is <mean of the group's queries, c_P>.
A latent has compressed channels, c_kv, and rotated ones, c_pe; a query has q_nope and q_pe.
"""

import math
from typing import ClassVar

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import Scored, ScoredFlow, ScoredFlowMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class Centroids(Scored):
    """score(P) = <mean_g q_g, c_P>, over keys or latents."""

    group = "mean of queries"

    def key_fields(self, block_size: int, width: int) -> dict[str, tuple[int, int]]:
        return {"centroids": (1, width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["centroids"] = cache[self.keys].mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return cache["centroids"] @ q.mean(1).T


@register("block_sparse_attention")
class BlockSparseAttention(Centroids, ScoredFlow):
    """score(P) = <mean_g q_g, c_P>."""

    paper = "Kinetics: Rethinking Test-Time Scaling Laws (2506.05333)"


@register("flash_moba")
class FlashMoBA(BlockSparseAttention):
    """score(P) = <mean_g q_g, c_P>.

    The decode rule of FlashMoBA, which speeds up the prefill kernel of MoBA: one choice for the
    whole group. `moba` has the choice for each query head.
    """

    paper = "Optimizing Mixture of Block Attention (2511.11571)"


@register("fsa")
class FSA(BlockSparseAttention):
    """score(P) = <mean_g q_g, c_P>.

    The decode rule of Flash Sparse Attention, which speeds up the prefill kernel of NSA.
    """

    paper = (
        "Flash Sparse Attention: An Alternative Efficient Implementation of Native Sparse"
        " Attention Kernel (2508.18224)"
    )


@register("moba")
class MoBA(BlockSparseAttention):
    """score_g(P) = <q_g, c_P>, a choice for each query head.

    Head g attends to its own plan's number of pages. The page of the query itself is reserved.
    """

    paper = "MoBA: Mixture of Block Attention for Long-Context LLMs (2502.13189)"
    group = "none: each query head chooses"

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select((cache["centroids"] @ q.T).topk(per_head=True))


@register("centered_block_sparse_attention")
class CenteredBlockSparseAttention(BlockSparseAttention):
    """score(P) = s_P - mean_P s, s_P = mean_g <q_g, c_P>.

    The mean is over the middle pages. It ranks like the plain rule: what is subtracted is one
    number for all pages.
    """

    group = "mean of scores"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        plain = (cache["centroids"] @ q.T).mean(2)
        return plain - plain.mean(0)


@register("gqa_block_sparse_attention")
class GQABlockSparseAttention(BlockSparseAttention):
    """score(P) = max_g softmax_P(0.09 <q_g, c_P>).

    The softmax is over the middle pages. The factor is about 1 / sqrt(128), and part of the rule.
    """

    group = "max of shares"

    SCALE = 0.09

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return (cache["centroids"] @ q.T).softmax(dim=0, scale=self.SCALE).max(2)


@register("running_avg_block_sparse")
class RunningAvgBlockSparse(BlockSparseAttention):
    """score_t(P) = 0.5 score_(t-1)(P) + <mean_g q_g, c_P>.

    The score is 0 when the page is complete.
    """

    paper = "a built-in rule of Vortex (2606.06453)"

    ALPHA = 0.5

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {**super().create_cache(block_size, head_dim), "running_score": (1, 1)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["running_score"] = 0.0

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        running = self.ALPHA * cache["running_score"] + self.score(q, cache, ctx)
        cache["running_score"] = running
        o.select(running.topk())


@register("venergy_gated_centroid")
class VEnergyGatedCentroid(BlockSparseAttention):
    """score(P) = <mean_g q_g, c_P> * mean_i |v_i|.

    The second factor, the mean L2 norm of the page's values, is by how much they can change the
    output.
    """

    paper = "a built-in rule of Vortex (2606.06453)"

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {**super().create_cache(block_size, head_dim), "v_energy": (1, 1)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["v_energy"] = cache["v"].l2norm(2).mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return super().score(q, cache, ctx) * cache["v_energy"]


@register("rope_aware_block_sparse_mla")
class RopeAwareBlockSparseMLA(Centroids, ScoredFlowMLA):
    """score(P) = <mean_h q_h, c_P>.

    The whole logit: the query sees both the compressed and the rotated channels.
    """

    paper = "a built-in rule of Vortex (2606.06453)"


@register("rope_unaware_block_sparse_mla")
class RopeUnawareBlockSparseMLA(RopeAwareBlockSparseMLA):
    """score(P) = <mean_h q_nope_h, c_kv_P>.

    The rotated channels do not count.
    """

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        plain = cache["centroids"][:, :, : self.num_plain]
        return plain @ q[:, :, : self.num_plain].mean(1).T


class RopeWeightedBlockSparseMLA(RopeAwareBlockSparseMLA):
    """score(P) = (1 - b) <q_nope, c_kv> + b <q_pe, c_pe>, queries averaged over heads."""

    B: ClassVar[float] = 0.5

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        mean, centroids, split = q.mean(1), cache["centroids"], self.num_plain
        plain = centroids[:, :, :split] @ mean[:, :, :split].T
        rotated = centroids[:, :, split:] @ mean[:, :, split:].T
        return (1.0 - self.B) * plain + self.B * rotated


def _weighted(percent: int) -> type[RopeWeightedBlockSparseMLA]:
    """Register a flow whose b is ``percent`` of 1; that of 50 ranks like the whole logit."""
    weight = percent / 100
    plain, rotated = f"{1.0 - weight:.2f} <q_nope, c_kv>", f"{weight:.2f} <q_pe, c_pe>"
    members = {
        "__doc__": f"score(P) = {plain} + {rotated}, queries averaged.",
        "__module__": __name__,
        "B": weight,
    }
    flow = type(f"RopeWeightedB{percent}", (RopeWeightedBlockSparseMLA,), members)
    return register(f"rope_weighted_block_sparse_mla_b{percent}")(flow)


RopeWeightedB10 = _weighted(10)
RopeWeightedB15 = _weighted(15)
RopeWeightedB20 = _weighted(20)
RopeWeightedB25 = _weighted(25)
RopeWeightedB50 = _weighted(50)
RopeWeightedB75 = _weighted(75)
RopeWeightedB90 = _weighted(90)
RopeWeightedB100 = _weighted(100)


@register("retro_infer")
class RetroInfer(BlockSparseAttention):
    """Top pages by <mean_g q_g, c_P> exact, the rest estimated.

    Page P of n keys enters, if it is not read, as n e^(q.c_P / sqrt(D)) below and
    e^(q.c_P / sqrt(D)) sum_i v_i above the line of the softmax. RetroInfer does so with clusters of
    keys; here a cluster is a page.
    """

    paper = (
        "RetroInfer: A Vector-Storage Approach for Scalable Long-Context LLM Inference (2505.02922)"
    )

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        self.page_tokens = block_size
        return {**super().create_cache(block_size, head_dim), "mean_value": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["mean_value"] = cache["v"].mean(1)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        chosen = self.score(q, cache, ctx).topk()
        scale = 1.0 / math.sqrt(q.shape[2])
        logits = (cache["centroids"] @ q.T) * scale + math.log(self.page_tokens)
        o.estimate(chosen, logits, cache["mean_value"])
