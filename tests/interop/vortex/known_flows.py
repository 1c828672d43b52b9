"""The published flows as their users write them, as text: names, imports and calls of Vortex."""

HEAD = """
from typing import Dict, Tuple
import torch
from vortex_torch.abs import ContextBase
from vortex_torch.flow import register, vFlow, vFlowMLA
from vortex_torch.indexer import (
    Add, GeMM, Kron, Load, MaskSlice, Max, Maximum, Mean, Multiply, Save, Softmax, Sum, topK,
)
from vortex_torch.cache import (
    Fill as CFill, L2Norm as CL2Norm, Max as CMax, MaxInterleave as CMaxInterleave, Mean as CMean,
    MeanInterleave as CMeanInterleave, Min as CMin, MinInterleave as CMinInterleave,
)


class CentroidCache(vFlow):
    def __init__(self):
        super().__init__()
        self.reduction = CMean(dim=1)

    def create_cache(self, block_size: int, head_dim: int) -> Dict[str, Tuple[int, int]]:
        return {"centroids": (1, head_dim)}

    def forward_cache(self, cache: Dict[str, torch.Tensor], loc: torch.Tensor, ctx: ContextBase):
        self.reduction(cache["k"], cache["centroids"], loc=loc, ctx=ctx)
"""

BLOCK_SPARSE = """
@register("block_sparse_attention")
class BlockSparseAttention(CentroidCache):
    def __init__(self):
        super().__init__()
        self.mean = Mean(dim=1)
        self.gemm = GeMM()
        self.output_func = topK()

    def forward_indexer(
        self,
        q: torch.Tensor,
        o: torch.Tensor,
        cache: Dict[str, torch.Tensor],
        ctx: ContextBase,
    ):
        q_mean = self.mean(q, ctx=ctx)
        score = self.gemm(q_mean, cache["centroids"], ctx=ctx)
        self.output_func(score, o, ctx=ctx)
"""

GQA_BLOCK_SPARSE = """
@register("gqa_block_sparse_attention")
class GQABlockSparseAttention(CentroidCache):
    def __init__(self):
        super().__init__()
        self.gemm = GeMM()
        self.softmax = Softmax(dim=0, scale=0.09)
        self.max_op = Max(dim=2)
        self.output_func = topK()

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(q, cache["centroids"], ctx=ctx)
        normalized = self.softmax(score, ctx=ctx)
        aggregated = self.max_op(normalized, ctx=ctx)
        self.output_func(aggregated, o, ctx=ctx)
"""

GQA_QUEST = """
@register("gqa_quest_sparse_attention")
class GQAQuestSparseAttention(vFlow):
    def __init__(self):
        super().__init__()
        self.mul_max, self.mul_min = Multiply(), Multiply()
        self.maximum_elementwise = Maximum()
        self.sum = Sum(dim=2)
        self.max_op = Max(dim=1)
        self.output_func = topK()
        self.reduction_max, self.reduction_min = CMax(dim=1), CMin(dim=1)

    def create_cache(self, block_size, head_dim):
        return {"max": (1, head_dim), "min": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.reduction_max(cache["k"], cache["max"], loc=loc, ctx=ctx)
        self.reduction_min(cache["k"], cache["min"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        s_max = self.mul_max(q, cache["max"], ctx=ctx)
        s_min = self.mul_min(q, cache["min"], ctx=ctx)
        s = self.maximum_elementwise(s_max, s_min, ctx=ctx)
        score = self.sum(s, ctx=ctx)
        aggregated = self.max_op(score, ctx=ctx)
        self.output_func(aggregated, o, ctx=ctx)
"""

LSERVE = """
@register("lserve_sparse_attention")
class LServeSparseAttention(vFlow):
    LSERVE_BLOCK_SIZE = 16

    def __init__(self):
        super().__init__()
        self.kron_max, self.kron_min = Kron(dim=1), Kron(dim=1)
        self.maximum_elementwise = Maximum()
        self.sum, self.max_op, self.output_func = Sum(dim=2), Max(dim=1), topK()
        self.cmax = CMaxInterleave(dim=1, k=self.LSERVE_BLOCK_SIZE)
        self.cmin = CMinInterleave(dim=1, k=self.LSERVE_BLOCK_SIZE)

    def create_cache(self, block_size, head_dim):
        rows = block_size // self.LSERVE_BLOCK_SIZE
        return {"max": (rows, head_dim), "min": (rows, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.cmax(cache["k"], cache["max"], loc=loc, ctx=ctx)
        self.cmin(cache["k"], cache["min"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        upper = self.kron_max(q, cache["max"], ctx=ctx)
        lower = self.kron_min(q, cache["min"], ctx=ctx)
        bound = self.sum(self.maximum_elementwise(upper, lower, ctx=ctx), ctx=ctx)
        self.output_func(self.max_op(bound, ctx=ctx), o, ctx=ctx)
"""

LSERVE_CENTROID = """
@register("lserve_centroid_sparse_attention")
class LServeCentroidSparseAttention(vFlow):
    SUB_BLOCK_SIZE = 16

    def __init__(self):
        super().__init__()
        self.reduction = CMeanInterleave(dim=1, k=self.SUB_BLOCK_SIZE)
        self.mean, self.gemm, self.max_op = Mean(dim=1), GeMM(), Max(dim=1)
        self.output_func = topK()

    def create_cache(self, block_size, head_dim):
        return {"centroids": (block_size // self.SUB_BLOCK_SIZE, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.reduction(cache["k"], cache["centroids"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.output_func(self.max_op(score, ctx=ctx), o, ctx=ctx)
"""

MASKED_QUEST = """
@register("masked_quest_sparse_attention")
class MaskedQuestSparseAttention(vFlow):
    MASK_END = 8

    def __init__(self):
        super().__init__()
        self.mask = MaskSlice(0, self.MASK_END, dim=2, alpha=0.0, beta=1.0)
        self.apply_mask, self.mul_max, self.mul_min = Multiply(), Multiply(), Multiply()
        self.maximum, self.sum, self.max_op = Maximum(), Sum(dim=2), Max(dim=1)
        self.output_func = topK()
        self.cmax, self.cmin = CMax(dim=1), CMin(dim=1)

    def create_cache(self, block_size, head_dim):
        return {"max": (1, head_dim), "min": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.cmax(cache["k"], cache["max"], loc=loc, ctx=ctx)
        self.cmin(cache["k"], cache["min"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        masked = self.apply_mask(q, self.mask(q, ctx=ctx), ctx=ctx)
        upper = self.mul_max(masked, cache["max"], ctx=ctx)
        lower = self.mul_min(masked, cache["min"], ctx=ctx)
        score = self.sum(self.maximum(upper, lower, ctx=ctx), ctx=ctx)
        self.output_func(self.max_op(score, ctx=ctx), o, ctx=ctx)
"""

CENTERED = """
@register("centered_block_sparse_attention")
class CenteredBlockSparseAttention(CentroidCache):
    def __init__(self):
        super().__init__()
        self.gemm, self.head_mean, self.page_mean = GeMM(), Mean(dim=2), Mean(dim=0)
        self.subtract = Add(alpha=1.0, beta=-1.0)
        self.output_func = topK()

    def forward_indexer(self, q, o, cache, ctx):
        score = self.head_mean(self.gemm(q, cache["centroids"], ctx=ctx), ctx=ctx)
        centered = self.subtract(score, self.page_mean(score, ctx=ctx), ctx=ctx)
        self.output_func(centered, o, ctx=ctx)
"""

RUNNING_AVERAGE = """
@register("running_avg_block_sparse")
class RunningAvgBlockSparse(CentroidCache):
    ALPHA = 0.5

    def __init__(self):
        super().__init__()
        self.fill = CFill(0.0)
        self.mean, self.gemm = Mean(dim=1), GeMM()
        self.load, self.save = Load(), Save()
        self.blend = Add(alpha=self.ALPHA, beta=1.0)
        self.output_func = topK()

    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim), "running_score": (1, 1)}

    def forward_cache(self, cache, loc, ctx):
        super().forward_cache(cache, loc, ctx)
        self.fill(cache["running_score"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        previous = self.load(cache["running_score"], ctx=ctx)
        running = self.blend(previous, score, ctx=ctx)
        self.save(running, cache["running_score"], ctx=ctx)
        self.output_func(running, o, ctx=ctx)
"""

V_ENERGY = """
@register("venergy_gated_centroid")
class VEnergyGatedCentroid(CentroidCache):
    def __init__(self):
        super().__init__()
        self.norm, self.norm_mean = CL2Norm(dim=2), CMean(dim=1)
        self.mean, self.gemm, self.gate, self.output_func = Mean(dim=1), GeMM(), Multiply(), topK()

    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim), "v_energy": (1, 1)}

    def forward_cache(self, cache, loc, ctx):
        super().forward_cache(cache, loc, ctx)
        norms = self.norm(cache["v"], None, loc=loc, ctx=ctx)
        self.norm_mean(norms, cache["v_energy"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.output_func(self.gate(score, cache["v_energy"], ctx=ctx), o, ctx=ctx)
"""

LATENT_HEAD = """
class LatentCentroid(vFlowMLA):
    ROWS_OF = 0  # tokens of a sub-block; 0: the whole block

    def __init__(self):
        super().__init__()
        self.reduction = CMeanInterleave(dim=1, k=self.ROWS_OF) if self.ROWS_OF else CMean(dim=1)
        self.mean, self.gemm, self.max_op = Mean(dim=1), GeMM(), Max(dim=1)
        self.output_func = topK()
        self.weigh = Multiply()
        self.mask = None

    def initialize(self, block_size, kv_lora_rank, qk_rope_head_dim, *args, **kwargs):
        super().initialize(block_size, kv_lora_rank, qk_rope_head_dim, *args, **kwargs)
        self.mask = self.make_mask(kv_lora_rank)

    def make_mask(self, kv_lora_rank):
        return None

    def create_cache(self, block_size, kv_lora_rank, qk_rope_head_dim):
        rows = block_size // self.ROWS_OF if self.ROWS_OF else 1
        return {"centroids": (rows, kv_lora_rank + qk_rope_head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.reduction(cache["latent"], cache["centroids"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        query = self.mean(q, ctx=ctx)
        if self.mask is not None:
            query = self.weigh(query, self.mask(query, ctx=ctx), ctx=ctx)
        score = self.gemm(query, cache["centroids"], ctx=ctx)
        self.output_func(self.max_op(score, ctx=ctx), o, ctx=ctx)
"""

ROPE_AWARE = """
@register("rope_aware_block_sparse_mla")
class RopeAwareBlockSparseMLA(LatentCentroid):
    pass
"""

ROPE_UNAWARE = """
@register("rope_unaware_block_sparse_mla")
class RopeUnawareBlockSparseMLA(LatentCentroid):
    def make_mask(self, kv_lora_rank):
        return MaskSlice(0, kv_lora_rank, 2, 1.0, 0.0)
"""

LSERVE_LATENT = """
@register("lserve_centroid_mla")
class LServeCentroidMLA(LatentCentroid):
    ROWS_OF = 16
"""

LSERVE_LATENT_UNAWARE = """
@register("rope_unaware_lserve_centroid_mla")
class RopeUnawareLServeCentroidMLA(LatentCentroid):
    ROWS_OF = 16

    def make_mask(self, kv_lora_rank):
        return MaskSlice(0, kv_lora_rank, 2, 1.0, 0.0)
"""

QUEST_LATENT = """
@register("quest_mla")
class QuestMLA(vFlowMLA):
    def __init__(self):
        super().__init__()
        self.mean, self.mul, self.maximum, self.sum = Mean(dim=1), Multiply(), Maximum(), Sum(dim=2)
        self.output_func = topK()
        self.cmax, self.cmin = CMax(dim=1), CMin(dim=1)

    def create_cache(self, block_size, kv_lora_rank, qk_rope_head_dim):
        width = kv_lora_rank + qk_rope_head_dim
        return {"max": (1, width), "min": (1, width)}

    def forward_cache(self, cache, loc, ctx):
        self.cmax(cache["latent"], cache["max"], loc=loc, ctx=ctx)
        self.cmin(cache["latent"], cache["min"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        query = self.mean(q, ctx=ctx)
        upper = self.mul(query, cache["max"], ctx=ctx)
        lower = self.mul(query, cache["min"], ctx=ctx)
        self.output_func(self.sum(self.maximum(upper, lower, ctx=ctx), ctx=ctx), o, ctx=ctx)
"""


def rope_weighted(percent: int) -> str:
    """One of a family: ``a <q_nope, c_kv> + b <q_pe, c_pe>`` with a + b = 1."""
    share = percent / 100
    return f"""
@register("rope_weighted_block_sparse_mla_b{percent}")
class RopeWeighted{percent}(LatentCentroid):
    A, B = {1 - share}, {share}

    def make_mask(self, kv_lora_rank):
        return MaskSlice(0, kv_lora_rank, 2, self.A, self.B)
"""


KNOWN_FLOWS: dict[str, str] = {
    "block_sparse_attention": HEAD + BLOCK_SPARSE,
    "gqa_block_sparse_attention": HEAD + GQA_BLOCK_SPARSE,
    "gqa_quest_sparse_attention": HEAD + GQA_QUEST,
    "lserve_sparse_attention": HEAD + LSERVE,
    "lserve_centroid_sparse_attention": HEAD + LSERVE_CENTROID,
    "masked_quest_sparse_attention": HEAD + MASKED_QUEST,
    "centered_block_sparse_attention": HEAD + CENTERED,
    "running_avg_block_sparse": HEAD + RUNNING_AVERAGE,
    "venergy_gated_centroid": HEAD + V_ENERGY,
    "rope_aware_block_sparse_mla": HEAD + LATENT_HEAD + ROPE_AWARE,
    "rope_unaware_block_sparse_mla": HEAD + LATENT_HEAD + ROPE_UNAWARE,
    "lserve_centroid_mla": HEAD + LATENT_HEAD + LSERVE_LATENT,
    "rope_unaware_lserve_centroid_mla": HEAD + LATENT_HEAD + LSERVE_LATENT_UNAWARE,
    "quest_mla": HEAD + LATENT_HEAD + QUEST_LATENT,
    **{
        f"rope_weighted_block_sparse_mla_b{percent}": HEAD + LATENT_HEAD + rope_weighted(percent)
        for percent in (10, 15, 20, 25, 50, 75, 90, 100)
    },
}
"""Registered name -> file."""
