"""Flow files that nobody published, in Vortex's style: other imports, other ops, other habits."""

DEEP_IMPORTS = """
from vortex_torch.abs.context_base import ContextBase
from vortex_torch.cache.reduce import Mean as CMean
from vortex_torch.flow.flow import vFlow
from vortex_torch.flow.registry import register
from vortex_torch.indexer.elementwise import Abs, Add_Mul
from vortex_torch.indexer.matmul import GeMM
from vortex_torch.indexer.output_func import topK
from vortex_torch.indexer.reduce import Max


@register("absolute_similarity")
class AbsoluteSimilarity(vFlow):
    def __init__(self):
        super().__init__()
        self.c = CMean(dim=1)
        self.g, self.a, self.m = GeMM(), Abs(), Max(dim=2)
        self.s, self.o = Add_Mul(1.0, 2.0), topK()

    def create_cache(self, block_size, head_dim):
        return {"mean": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx: ContextBase):
        self.c(cache["k"], cache["mean"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx: ContextBase):
        x = self.a(self.g(q, cache["mean"], ctx=ctx), ctx=ctx)
        self.o(self.s(self.m(x, ctx=ctx), ctx=ctx), o, ctx=ctx)
"""

SMOOTHED = '''
import torch
import vortex_torch
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import Conv1d, GeMM, Mean, Normalize, topK
from vortex_torch.cache import Mean as CMean


@register("smoothed_centroid")
class SmoothedCentroid(vFlow):
    """A score is blended with those of the blocks before it."""

    def __init__(self):
        super().__init__()
        self.creduce = CMean(dim=1)
        self.mean, self.gemm = Mean(dim=1), GeMM()
        self.normalize = Normalize(dim=0)
        self.conv = Conv1d([[[0.5]], [[0.25]], [[0.25]]], dim=0, dtype=torch.bfloat16)
        self.out = topK()

    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.creduce(cache["k"], cache["centroids"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        s = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.out(self.conv(self.normalize(s, ctx=ctx), ctx=ctx), o, ctx=ctx)
'''

TWO_STREAMS = '''
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, L2Norm, Load, Max, Mean, TopK, Union
from vortex_torch.cache import L2Norm as CL2Norm, Max as CMax, Mean as CMean


@register("two_streams")
class TwoStreams(vFlow):
    """Blocks that look like the query, and blocks with large values."""

    def __init__(self):
        super().__init__()
        self.cmean, self.cnorm, self.cmax = CMean(dim=1), CL2Norm(dim=2), CMax(dim=1)
        self.mean, self.gemm, self.load = Mean(dim=1), GeMM(), Load()
        self.by_key, self.by_value, self.union = TopK(2), TopK(1), Union()

    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim), "largest": (1, 1)}

    def forward_cache(self, cache, loc, ctx):
        self.cmean(cache["k"], cache["centroids"], loc=loc, ctx=ctx)
        norms = self.cnorm(cache["v"], None, loc=loc, ctx=ctx)
        self.cmax(norms, cache["largest"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        similar = self.by_key(score, ctx=ctx)
        heavy = self.by_value(self.load(cache["largest"], ctx=ctx), ctx=ctx)
        self.union(similar, heavy, o, ctx=ctx)
'''

MASKED_BY_AVERAGE = '''
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import Add, GeMM, Max, Mean, WhereGreaterEqual, topK
from vortex_torch.cache import Mean as CMean


@register("above_average")
class AboveAverage(vFlow):
    """Heads vote: blocks below a head's average are masked out for it."""

    def __init__(self):
        super().__init__()
        self.cmean = CMean(dim=1)
        self.gemm, self.average, self.mask = GeMM(), Mean(dim=0), WhereGreaterEqual()
        self.add, self.best, self.out = Add(), Max(dim=2), topK()

    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.cmean(cache["k"], cache["c"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        s = self.gemm(q, cache["c"], ctx=ctx)
        keep = self.mask(s, self.average(s, ctx=ctx), ctx=ctx)
        self.out(self.best(self.add(s, keep, ctx=ctx), ctx=ctx), o, ctx=ctx)
'''

REUSED_OBJECTS = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import Add, GeMM, Mean, Multiply, Sum, topK
from vortex_torch.cache import Max as CMax, Mean as CMean, Multiply as CMultiply

GEMM, MUL, ADD = GeMM(), Multiply(), Add()  # shared by all flows of the file, called many times


@register("second_moment")
class SecondMoment(vFlow):
    def __init__(self):
        super().__init__()
        self.reduce, self.square = CMean(dim=1), CMultiply()
        self.mean, self.sum, self.out = Mean(dim=1), Sum(dim=2), topK()

    def create_cache(self, block_size, head_dim):
        return {"first": (1, head_dim), "second": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.reduce(cache["k"], cache["first"], loc=loc, ctx=ctx)
        squares = self.square(cache["k"], cache["k"], None, loc=loc, ctx=ctx)
        self.reduce(squares, cache["second"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        m = self.mean(q, ctx=ctx)
        first = GEMM(m, cache["first"], ctx=ctx)
        second = GEMM(MUL(m, m, ctx=ctx), cache["second"], ctx=ctx)
        self.out(ADD(first, second, ctx=ctx), o, ctx=ctx)
"""

GATED_BY_SIGMOID = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Log, Exp, Max, Multiply, Relu, Sigmoid, Silu, Sum, topK
from vortex_torch.cache import Exp as CExp, Log as CLog, Max as CMax, Mean as CMean, Relu as CRelu


@register("gated_exponential")
class GatedExponential(vFlow):
    def __init__(self):
        super().__init__()
        self.crelu, self.cexp = CRelu(), CExp(beta=0.1)
        self.cmean, self.clog = CMean(dim=1), CLog(alpha=1.0)
        self.gemm, self.sigmoid, self.silu = GeMM(), Sigmoid(beta=-1.0), Silu(beta=-1.0)
        self.relu, self.exp, self.log = Relu(), Exp(beta=0.2), Log(alpha=1.0)
        self.mul, self.sum, self.out = Multiply(), Sum(dim=2), topK()

    def create_cache(self, block_size, head_dim):
        return {"soft": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        positive = self.crelu(cache["k"], None, loc=loc, ctx=ctx)
        grown = self.cexp(positive, None, loc=loc, ctx=ctx)
        self.clog(self.cmean(grown, None, loc=loc, ctx=ctx), cache["soft"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        s = self.gemm(q, cache["soft"], ctx=ctx)
        gate = self.sigmoid(s, ctx=ctx)
        x = self.mul(self.silu(s, ctx=ctx), gate, ctx=ctx)
        x = self.log(self.relu(x, ctx=ctx), ctx=ctx)
        self.out(self.sum(self.exp(x, ctx=ctx), ctx=ctx), o, ctx=ctx)
"""

DECAYED_MAXIMUM = '''
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import Add_Mul, GeMM, Load, Max, Maximum, Mean, Save, topK
from vortex_torch.cache import Fill as CFill, Mean as CMean


@register("decayed_maximum")
class DecayedMaximum(vFlow):
    """Saved before it is loaded in the text: a load sees the last step all the same."""

    def __init__(self):
        super().__init__()
        self.cmean, self.fill = CMean(dim=1), CFill(alpha=-2.0)
        self.mean, self.gemm, self.decay = Mean(dim=1), GeMM(), Add_Mul(alpha=0.0, beta=0.75)
        self.larger, self.load, self.save, self.out = Maximum(), Load(), Save(), topK()

    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim), "peak": (1, 1)}

    def forward_cache(self, cache, loc, ctx):
        self.cmean(cache["k"], cache["c"], loc=loc, ctx=ctx)
        self.fill(cache["peak"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        now = self.gemm(self.mean(q, ctx=ctx), cache["c"], ctx=ctx)
        peak = self.larger(now, self.decay(cache["peak"], ctx=ctx), ctx=ctx)
        self.save(peak, cache["peak"], ctx=ctx)
        before = self.load(cache["peak"], ctx=ctx)
        self.out(self.larger(peak, before, ctx=ctx), o, ctx=ctx)
'''

TRANSPOSED = '''
from vortex_torch import indexer, cache
from vortex_torch.flow import register, vFlow


@register("transposed_products")
class TransposedProducts(vFlow):
    """Modules by name, products written the other way round."""

    def __init__(self):
        super().__init__()
        self.c = cache.MinInterleave(dim=1, k=4)
        self.t, self.g = indexer.Transpose(), indexer.GeMM()
        self.r, self.m = indexer.Reshape(-1, 1, 6), indexer.Min(dim=2)
        self.out = indexer.approxTopK(0.0)

    def create_cache(self, block_size, head_dim):
        return {"low": (block_size // 4, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.c(cache["k"], cache["low"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        s = self.t(self.g(q, cache["low"], ctx=ctx), ctx=ctx)
        self.out(self.m(self.r(s, ctx=ctx), ctx=ctx), o, ctx=ctx)
'''

LEARNED = """
import numpy as np
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Max, Parameter, Reshape, topK
from vortex_torch.cache import GeMM as CGeMM, Mean as CMean, Reshape as CReshape

WIDTH, RANK = 16, 5


@register("learned_projection")
class LearnedProjection(vFlow):
    def __init__(self, seed=7):
        super().__init__()
        numbers = np.random.default_rng(seed)
        self.w_query = Parameter(numbers.standard_normal((RANK, WIDTH)))
        self.w_key = Parameter(numbers.standard_normal((3, RANK, WIDTH)))  # a table for each layer
        self.cmean, self.cproject, self.cturn = CMean(dim=1), CGeMM(), CReshape(-1, 1, RANK)
        self.project, self.gemm, self.best, self.out = GeMM(), GeMM(), Max(dim=2), topK()
        self.turn = Reshape(-1, 3, RANK)

    def create_cache(self, block_size, head_dim):
        return {"keys": (1, RANK)}

    def forward_cache(self, cache, loc, ctx):
        mean = self.cmean(cache["k"], None, loc=loc, ctx=ctx)
        projected = self.cproject(mean, self.w_key, None, loc=loc, ctx=ctx)
        self.cturn(projected, cache["keys"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        query = self.turn(self.project(q, self.w_query, ctx=ctx), ctx=ctx)
        self.out(self.best(self.gemm(query, cache["keys"], ctx=ctx), ctx=ctx), o, ctx=ctx)
"""

POSITION_MASK = '''
from vortex_torch.flow import register, vFlowMLA
from vortex_torch.indexer import Add, Kron, Max, Mean, Sum, WhereLess, topK
from vortex_torch.cache import MaskSlice as CMaskSlice, Mean as CMean, Multiply as CMultiply


@register("half_latent")
class HalfLatent(vFlowMLA):
    """The early half of a block's tokens, with a product of channels; latent attention."""

    def __init__(self):
        super().__init__()
        self.cmask, self.cmul, self.cmean = CMaskSlice(0, 4, dim=1), CMultiply(), CMean(dim=1)
        self.mean, self.kron, self.sum = Mean(dim=1), Kron(dim=(1,)), Sum(dim=2)
        self.best, self.mask, self.add, self.out = Max(dim=1), WhereLess(), Add(), topK()
        self.average = Mean(dim=0)

    def create_cache(self, block_size, kv_lora_rank, qk_rope_head_dim):
        return {"early": (1, kv_lora_rank + qk_rope_head_dim)}

    def forward_cache(self, cache, loc, ctx):
        mask = self.cmask(cache["latent"], None, loc=loc, ctx=ctx)
        kept = self.cmul(cache["latent"], mask, None, loc=loc, ctx=ctx)
        self.cmean(kept, cache["early"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        products = self.sum(self.kron(q, cache["early"], ctx=ctx), ctx=ctx)
        best = self.best(products, ctx=ctx)
        low = self.mask(best, self.average(best, ctx=ctx), ctx=ctx)
        self.out(self.add(best, low, ctx=ctx), o, ctx=ctx)
'''

CUSTOM_OP = '''
from vortex_torch.abs import FORMAT, vOp, vTensor, as_vtensor
from vortex_torch.utils import ReduceType, Schedule
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import Context, GeMM, Max, Mean, Multiply, topK
from vortex_torch.cache import Context as CacheContext, Mean as CMean


class Squared(vOp):
    """An op of the author's own, made of library ops."""

    def __init__(self):
        super().__init__()
        self.product = Multiply()

    def profile(self, x, ctx):
        assert isinstance(x, vTensor) and x._format in (FORMAT.BATCHED, FORMAT.RAGGED)
        return self.product(x, x, ctx=ctx)


@register("squared_similarity")
class SquaredSimilarity(vFlow):
    def __init__(self):
        super().__init__()
        self.cmean, self.gemm, self.best, self.out = CMean(dim=1), GeMM(), Max(dim=2), topK()
        self.square = Squared()
        assert self.out.schedule == Schedule.S and self.gemm.schedule == Schedule.W

    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        assert isinstance(ctx, CacheContext) and ctx.block_size == 8
        self.cmean(cache["k"], cache["c"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        assert isinstance(ctx, Context) and ctx.group_size == q.shape[1] and q.tensor_id == 0
        s = self.square(self.gemm(q, cache["c"], ctx=ctx), ctx=ctx)
        self.out(self.best(s, ctx=ctx), o, ctx=ctx)
'''

OWN_FLOWS: dict[str, str] = {
    "absolute_similarity": DEEP_IMPORTS,
    "smoothed_centroid": SMOOTHED,
    "two_streams": TWO_STREAMS,
    "above_average": MASKED_BY_AVERAGE,
    "second_moment": REUSED_OBJECTS,
    "gated_exponential": GATED_BY_SIGMOID,
    "decayed_maximum": DECAYED_MAXIMUM,
    "transposed_products": TRANSPOSED,
    "learned_projection": LEARNED,
    "half_latent": POSITION_MASK,
    "squared_similarity": CUSTOM_OP,
}
"""Registered name -> file."""
