"""As many pages as hold most of an estimated mass, from a few centroids a page.

A page keeps m centroids c_j with counts n_j: the first key, then again and again the key farthest
from those taken, then one step of Lloyd. mass_g(P) = sum_j n_j exp(q_g . c_j / (T sqrt(D))), made
to sum to one over the middle pages, mean over the group. The fewest pages that hold the share p are
read, but never more than the plan allows (a ratio of 0.75 in the original).
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.cache import Concat
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("frozen_dynamic_top_p")
class FrozenDynamicTopP(ScoredFlow):
    """score(P) = mean_g of the share of mass_g(P); the fewest pages that hold p of it."""

    paper = "a development branch of Vortex (2606.06453)"
    group = "mean of shares"

    def __init__(self, p: float = 0.9, centroids: int = 4, temperature: float = 1.0) -> None:
        super().__init__()
        self.p = p
        self.num_centroids = centroids
        self.temperature = temperature

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {"centroids": (self.num_centroids, head_dim), "counts": (self.num_centroids, 1)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        keys = cache["k"]
        centers = self._farthest(keys)
        distances = Concat(dim=2)(*(_distance(keys, center) for center in centers), ctx=ctx)
        nearest = (-distances).argmax(2)
        members = [(nearest == index).cast("float32") for index in range(self.num_centroids)]
        counts = [member.sum(1) for member in members]
        means = [
            (count > 0.0).where((member * keys).sum(1) / count, center)
            for center, member, count in zip(centers, members, counts, strict=True)
        ]
        cache["centroids"] = Concat(dim=1)(*means, ctx=ctx)
        cache["counts"] = Concat(dim=1)(*counts, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        logits = (cache["centroids"] @ q.T) * (1.0 / (self.temperature * math.sqrt(q.shape[2])))
        weights = (cache["counts"] * (logits - logits.max(1).max(0)).exp()).sum(1)
        return (weights / weights.sum(0)).mean(2)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        score = self.score(q, cache, ctx)
        o.select(score.top_p(self.p) & score.topk())

    def _farthest(self, keys: Value) -> list[Value]:
        centers = [keys[:, :1]]
        distance = None  # to the nearest center so far
        while len(centers) < self.num_centroids:
            added = _distance(keys, centers[-1])
            distance = added if distance is None else distance.minimum(added)
            centers.append(keys.gather(distance.argmax(1), dim=1))
        return centers


def _distance(keys: Value, center: Value) -> Value:
    """Squared, [1, page size, 1]"""
    difference = keys - center
    return (difference * difference).sum(2)
