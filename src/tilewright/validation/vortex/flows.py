"""Flow files as Vortex's users write them, and the score of each flow as a NumPy function.

A score function gets the steps of one KV head and returns a score for every page and step; the
largest scores between the first and the last page are selected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeadSteps:
    """One KV head: keys [tokens, D], queries [steps, G, D]; step t sees ``first + t`` tokens."""

    keys: Doubles
    queries: Doubles
    first: int
    page_size: int

    def pages(self, step: int) -> list[Doubles]:
        """Keys of each page that the step sees."""
        seen = self.keys[: self.first + step]
        return [seen[at : at + self.page_size] for at in range(0, len(seen), self.page_size)]

    def centroids(self) -> Doubles:
        return np.stack([page.mean(axis=0) for page in self.pages(0)])


Score = Callable[[HeadSteps], Doubles]  # [steps, pages]


@dataclass(frozen=True, slots=True)
class VortexFlow:
    """A flow file, the files beside it, and what it selects by."""

    text: str
    score: Score
    others: Mapping[str, str] = field(default_factory=dict)


HEAD = """
from typing import Dict, Tuple
import torch
from vortex_torch.abs import ContextBase
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import (
    Add, GeMM, GTGroupScore, GTTopK, Load, Max, Mean, Save, Sigmoid, Softmax, Sum, topK,
)
from vortex_torch.cache import Fill as CFill, Mean as CMean, MaxInterleave as CMax


class Centroids(vFlow):
    def __init__(self):
        super().__init__()
        self.reduction = CMean(dim=1)
        self.mean, self.gemm, self.output_func = Mean(dim=1), GeMM(), topK()

    def create_cache(self, block_size: int, head_dim: int) -> Dict[str, Tuple[int, int]]:
        return {"centroids": (1, head_dim)}

    def forward_cache(self, cache: Dict[str, torch.Tensor], loc: torch.Tensor, ctx: ContextBase):
        self.reduction(cache["k"], cache["centroids"], loc=loc, ctx=ctx)
"""

BLOCK_SPARSE = """

@register("flow")
class InPlaceBlockSparse(Centroids):
    def __init__(self):
        super().__init__()
        self.softmax, self.max_op = Softmax(dim=0, scale=0.25), Max(dim=2)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(q, cache["centroids"], ctx=ctx)
        self.softmax(score, ctx=ctx)
        self.output_func(self.max_op(score, ctx=ctx), o, ctx=ctx)
"""

H2O = """

@register("flow")
class InPlaceH2O(Centroids):
    def __init__(self):
        super().__init__()
        self.fill, self.load, self.save = CFill(0.0), Load(), Save()
        self.softmax, self.total, self.add = Softmax(dim=0, scale=0.25), Sum(dim=2), Add()

    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim), "mass": (1, 1)}

    def forward_cache(self, cache, loc, ctx):
        super().forward_cache(cache, loc, ctx)
        self.fill(cache["mass"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(q, cache["centroids"], ctx=ctx)
        self.softmax(score, ctx=ctx)
        mass = self.add(self.load(cache["mass"], ctx=ctx), self.total(score, ctx=ctx), ctx=ctx)
        self.save(mass, cache["mass"], ctx=ctx)
        self.output_func(mass, o, ctx=ctx)
"""

ATTRIBUTES = """

@register("flow")
class Attributes(Centroids):
    def __init__(self):
        super().__init__()
        self.softmax, self.max_op = Softmax(dim=0), Max(dim=2)
        self.sigmoid, self.add = Sigmoid(), Add()
        self.sigmoid.beta = -1.0

    def initialize(self, *args, **kwargs):
        super().initialize(*args, **kwargs)
        self.softmax.scale = 0.25

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(q, cache["centroids"], ctx=ctx)
        weights = self.max_op(self.softmax(score, ctx=ctx), ctx=ctx)
        mean = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.add.alpha = 3.0
        self.output_func(self.add(weights, self.sigmoid(mean, ctx=ctx), ctx=ctx), o, ctx=ctx)
"""

METHODS = """

@register("flow")
class TensorMethods(Centroids):
    def forward_indexer(self, q, o, cache, ctx):
        mean = q.mean(dim=1, keepdim=True)
        by_head = torch_like(q, cache["centroids"]).amax(dim=-1, keepdim=True)
        plain = self.gemm(mean, cache["centroids"], ctx=ctx)
        self.output_func(by_head + plain.clamp(min=0.0), o, ctx=ctx)


def torch_like(q, centroids):
    rows = q.reshape(-1, q.shape[1], q.shape[2])
    return centroids.matmul(rows.transpose(1, 2)).view(-1, 1, q.shape[1])
"""

TYPED = """

@register("flow")
class TypedCache(Centroids):
    def __init__(self):
        super().__init__()
        self.coarse, self.max_op = CMax(dim=1, k=4), Max(dim=1)

    def create_cache(self, block_size, head_dim):
        return {"coarse": ((block_size // 4, head_dim), torch.bfloat16)}

    def forward_cache(self, cache, loc, ctx):
        self.coarse(cache["k"], cache["coarse"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["coarse"], ctx=ctx)
        self.output_func(self.max_op(score, ctx=ctx), o, ctx=ctx)
"""

REQUEST = """

@register("flow")
class RequestCache(Centroids):
    def __init__(self):
        super().__init__()
        self.load, self.save, self.blend = Load(), Save(), Add(alpha=0.5, beta=1.0)

    def create_request_cache(self, block_size, head_dim):
        return {"query": (1, head_dim)}

    def forward_indexer(self, q, o, cache, ctx):
        query = self.blend(self.load(cache["query"], ctx=ctx), self.mean(q, ctx=ctx), ctx=ctx)
        self.save(query, cache["query"], ctx=ctx)
        self.output_func(self.gemm(query, cache["centroids"], ctx=ctx), o, ctx=ctx)
"""

GROUND_TRUTH = """

@register("flow")
class GroundTruth(vFlow):
    def __init__(self):
        super().__init__()
        self.score, self.output_func = GTGroupScore(), GTTopK()

    def forward_indexer(self, q, o, cache, ctx):
        self.output_func(self.score(q, cache["k"], ctx=ctx), o, ctx=ctx)
"""

IMPORTED = """
from .base import Centroids
from .parts.rule import WEIGHT
from vortex_torch.flow import register


@register("flow")
class Imported(Centroids):
    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.output_func(score * WEIGHT, o, ctx=ctx)
"""


def middle_softmax(logits: Doubles) -> Doubles:
    """Softmax over all pages but the first and the last; [pages, heads], others 0."""
    result = np.zeros_like(logits)
    middle = logits[1:-1]
    weights = np.exp(middle - middle.max(axis=0))
    result[1:-1] = weights / weights.sum(axis=0)
    return result


def _block_sparse(head: HeadSteps) -> Doubles:
    logits = [head.centroids() @ query.T for query in head.queries]
    return np.stack([middle_softmax(0.25 * each).max(axis=1) for each in logits])


def _h2o(head: HeadSteps) -> Doubles:
    logits = [head.centroids() @ query.T for query in head.queries]
    return np.cumsum([middle_softmax(0.25 * each).sum(axis=1) for each in logits], axis=0)


def _attributes(head: HeadSteps) -> Doubles:
    means = head.queries.mean(axis=1) @ head.centroids().T
    scores: Doubles = 3.0 * _block_sparse(head) + 1.0 / (1.0 + np.exp(-means))
    return scores


def _methods(head: HeadSteps) -> Doubles:
    logits = np.einsum("tgd,pd->tpg", head.queries, head.centroids())
    scores: Doubles = logits.max(axis=2) + np.maximum(logits.mean(axis=2), 0.0)
    return scores


def _typed(head: HeadSteps) -> Doubles:
    whole = [page.reshape(-1, 4, page.shape[1]).max(axis=1) for page in head.pages(0)[:-1]]
    coarse = np.stack(whole).astype(ml_dtypes.bfloat16).astype(np.float64)
    scores = np.einsum("td,prd->tpr", head.queries.mean(axis=1), coarse).max(axis=2)
    return np.pad(scores, ((0, 0), (0, 1)))


def _request(head: HeadSteps) -> Doubles:
    kept, scores = np.zeros(head.keys.shape[1]), []
    for query in head.queries:
        kept = 0.5 * kept + query.mean(axis=0)
        scores.append(head.centroids() @ kept)
    return np.stack(scores)


def _ground_truth(head: HeadSteps) -> Doubles:
    scores = []
    for step, query in enumerate(head.queries):
        pages = head.pages(step)
        logits = np.concatenate(pages) @ query.T / np.sqrt(query.shape[1])
        weights = np.exp(logits - logits.max(axis=0))
        group = (weights / weights.sum(axis=0)).sum(axis=1)
        ends = np.cumsum([len(page) for page in pages])[:-1]
        scores.append([part.max() for part in np.split(group, ends)])
    return np.array(scores)


def _imported(head: HeadSteps) -> Doubles:
    scores: Doubles = -(head.queries.mean(axis=1) @ head.centroids().T)
    return scores


FLOWS: Mapping[str, VortexFlow] = {
    "VX1 in-place softmax, block sparse": VortexFlow(HEAD + BLOCK_SPARSE, _block_sparse),
    "VX2 in-place softmax, H2O": VortexFlow(HEAD + H2O, _h2o),
    "VX3 attributes set after construction": VortexFlow(HEAD + ATTRIBUTES, _attributes),
    "VX4 tensor methods": VortexFlow(HEAD + METHODS, _methods),
    "VX5 typed cache": VortexFlow(HEAD + TYPED, _typed),
    "VX6 request cache": VortexFlow(HEAD + REQUEST, _request),
    "VX7 ground-truth ops": VortexFlow(HEAD + GROUND_TRUTH, _ground_truth),
    "VX8 relative imports": VortexFlow(
        IMPORTED, _imported, {"base.py": HEAD, "parts/rule.py": "WEIGHT = -1.0\n"}
    ),
}
