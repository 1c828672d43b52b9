"""As many pages as hold most of an estimated mass."""

import math
from collections.abc import Iterable

from tilewright.attention.abs import BranchSpec, ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.cache import Concat
from tilewright.attention.flow import FieldSpec, FlowBase, register
from tilewright.attention.flow.registry import get
from tilewright.attention.flows.ready import OverKeys, OverLatents, Ready, ScoredFlow
from tilewright.attention.graph import Geometry
from tilewright.errors import FlowInitError, TerminalError

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

STEPS = 15  # between the 16 levels of four bits
ZERO_CODE = 8  # levels below the one that is stored as 0


class Choice(OutputSlot):
    """Stands in for ``o`` while the base runs, and keeps what it selects."""

    def __init__(self, o: OutputSlot) -> None:
        super().__init__(o.trace)
        self.selection: Value | None = None

    def combine(self, branches: Iterable[BranchSpec]) -> None:
        specs = tuple(branches)
        if len(specs) != 1 or specs[0].selection is None or specs[0].logits is not None:
            found, expected = "a base with gates or estimates", "a base that selects pages"
            raise TerminalError("twilight", found, expected, "choose a base that only selects")
        self.selection = specs[0].selection


class PrunedFlow(Ready, FlowBase):
    """Smallest part of the base's choice with an estimated mass of at least p.

    The base chooses pages, as many as the plan allows. On four-bit keys the attention inside that
    choice is estimated: softmax over its tokens, added by page, mean over the group (or head by
    head, if the base chooses so). The fewest pages that hold the share p of it are read. Reserved
    pages are read in any case and not part of the estimate.
    """

    paper = "Twilight: Adaptive Attention Sparsity with Hierarchical Top-p Pruning (2502.02770)"
    group = "mean of masses"

    def __init__(self, p: float, base: FlowBase | str, scale: float | None) -> None:
        """``base`` is a flow or the name of one; ``scale`` of logits is 1 / sqrt(width) if None."""
        super().__init__()
        self.p = p
        self.scale = scale
        self.base = get(base)() if isinstance(base, str) else base
        self.partial_pages = self.base.partial_pages
        if self.base.kind is not self.kind:
            found, expected = f"a base of kind {self.base.kind}", f"kind {self.kind}"
            raise FlowInitError("twilight", found, expected, "use twilight_mla for latents")

    def create_inputs(self) -> dict[str, tuple[int, int]]:
        return self.base.create_inputs()

    def initialize_for(self, geometry: Geometry) -> None:
        self.base.initialize_for(geometry)
        super().initialize_for(geometry)

    def key_fields(self, block_size: int, width: int) -> dict[str, object]:
        """Return those of the base, and keys in four bits."""
        own = {
            "key_code": FieldSpec((block_size, width), dtype="int4"),
            "key_step": FieldSpec((block_size, 1)),
            "key_middle": FieldSpec((block_size, 1)),
        }
        return {**(self.base.field_specs or {}), **own}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        self.base.forward_cache(cache, loc=loc, ctx=ctx)
        keys = cache[self.keys]
        low = keys.min(2)
        step = (keys.max(2) - low) / STEPS
        code = ((keys - low) / (step > 0.0).where(step, 1.0) + 0.5).floor() - ZERO_CODE
        cache["key_code"] = code.cast("int32")
        cache["key_step"] = step
        cache["key_middle"] = low + ZERO_CODE * step

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        chosen = self._choice(q, o, cache, ctx)
        keys = cache["key_code"] * cache["key_step"] + cache["key_middle"]
        scale = 1.0 / math.sqrt(q.shape[2]) if self.scale is None else self.scale
        logits = chosen.where((keys @ q.T) * scale, -1e30)
        weights = (logits - logits.max(1).max(0)).exp().sum(1)
        masses = weights / weights.sum(0)
        per_head = chosen.shape[2] > 1
        shares = masses if per_head else masses.mean(2)
        o.select(shares.top_p(self.p, per_head=per_head) & chosen)

    def _choice(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> Value:
        choice = Choice(o)
        self.base.forward_indexer(q, choice, cache, ctx)
        if choice.selection is None:
            found, fix = "a base without a terminal", "end its forward_indexer with a selection"
            raise TerminalError("twilight", found, "exactly one", fix)
        return choice.selection


@register("twilight")
class Twilight(PrunedFlow, OverKeys):
    """Smallest part of the base's choice with an estimated mass of at least p."""

    def __init__(
        self, p: float = 0.95, base: FlowBase | str = "quest", scale: float | None = None
    ) -> None:
        super().__init__(p, base, scale)


@register("twilight_mla")
class TwilightMLA(PrunedFlow, OverLatents):
    """Smallest part of the base's choice with an estimated mass of at least p.

    The scale of the logits belongs to the model; it is 1 / sqrt(latent width) unless given.
    """

    def __init__(
        self, p: float = 0.95, base: FlowBase | str = "quest_mla", scale: float | None = None
    ) -> None:
        super().__init__(p, base, scale)


@register("frozen_dynamic_top_p")
class FrozenDynamicTopP(ScoredFlow):
    """score(P) = mean_g of the share of mass_g(P); the fewest pages that hold p of it.

    A page keeps m centroids c_j with counts n_j: the first key, then again and again the key
    farthest from those taken, then one step of Lloyd.
    mass_g(P) = sum_j n_j exp(q_g . c_j / (T sqrt(D))), made to sum to one over the middle pages.
    Never more pages are read than the plan allows (a ratio of 0.75 in the original).
    """

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
