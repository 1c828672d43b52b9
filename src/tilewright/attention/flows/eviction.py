"""Flows that forget for good: a page that was dropped is never read again."""

from abc import abstractmethod

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import FieldSpec, register, vFlow
from tilewright.attention.flows.ready import Ready
from tilewright.attention.graph import Span
from tilewright.attention.indexer import AttentionMass, PoolPages, PromptMass, StepIndex
from tilewright.attention.ops.page_axis import Kind

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class EvictingFlow(Ready, vFlow):
    """Keeps the plan's number of living pages with the largest worth; the others die.

    State ``alive`` is true until a page is dropped. Reserved pages live, and so does a page that is
    still being filled. A row that fits its budget reads every page, unless state advances in every
    block (``state_advance="every_block"``).
    """

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        return {"alive": FieldSpec((1, 1), dtype="bool", initial=1.0)}

    @abstractmethod
    def worth(self, first: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        """[S, 1, 1] at this step; ``first`` is true at the first step of a request."""

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        first = StepIndex()(ctx=ctx) == 0
        alive = cache["alive"]
        kept = alive.where(self.worth(first, cache, ctx), -1e30).topk() & alive
        cache["alive"] = kept
        o.select(kept)


@register("tova")
class TOVA(EvictingFlow):
    """worth(P) = mean_g of the mass of P in the last step.

    Token omission via attention: what the last query liked least goes. At the first step the mass
    is that of the prompt's last query, and it is the mean over the group.
    """

    paper = "Transformers are Multi-State RNNs (2401.06104)"
    group = "mean of masses"

    def __init__(self) -> None:
        super().__init__()
        self.prompt = PromptMass(1)
        self.last = AttentionMass()

    def worth(self, first: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return first.where(self.prompt(ctx=ctx).mean(2), self.last(ctx=ctx).mean(2))


@register("h2o")
class H2O(EvictingFlow):
    """worth_t(P) = worth_(t-1)(P) + mean_g of the mass of P in step t - 1.

    Heavy hitters: pages that have drawn the most attention so far. The worth begins with the mass
    that the last ``observed`` queries of the prompt gave to the page.

    The sum is the published one with ``state_advance="every_block"``: a page then counts from the
    step before it is complete. By the rule of Vortex, which is the default, it grows in steps in
    which the row selects, and in pages that are not reserved at the end; the rest of the mass is
    not in it.
    """

    paper = (
        "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models"
        " (2306.14048)"
    )
    group = "mean of masses"

    def __init__(self, observed: int = 64) -> None:
        super().__init__()
        self.prompt = PromptMass(observed)
        self.last = AttentionMass()

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        return {
            **super().create_cache(block_size, head_dim),
            "accumulated": FieldSpec((1, 1), "float32"),
        }

    def worth(self, first: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        grown = cache["accumulated"] + self.last(ctx=ctx).mean(2)
        total = first.where(self.prompt(ctx=ctx).mean(2), grown)
        cache["accumulated"] = total
        return total


@register("snapkv")
class SnapKV(Ready, vFlow):
    """Pages with the most pooled votes of the prompt, chosen once.

    votes(P) = mean_g of the mass that the last ``observed`` prompt queries give to page P, the
    largest within ``reach`` pages on both sides. The plan's number of pages with the most votes is
    kept at the first step; later pages are always read.
    """

    paper = "SnapKV: LLM Knows What You are Looking for Before Generation (2404.14469)"
    group = "mean of masses"

    def __init__(self, observed: int = 32, reach: int = 1, keep: int | None = None) -> None:
        super().__init__()
        self.keep = keep  # None: the plan's number
        self.prompt = PromptMass(observed)
        self.neighbours = PoolPages(Kind.MAX, before=reach, after=reach, span=Span.ALL)

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        return {"alive": FieldSpec((1, 1), dtype="bool", initial=1.0)}

    def survivors(self, cache: FieldMap, ctx: ContextBase) -> Value:
        """Bool [S, 1, 1], from the first step on."""
        first = StepIndex()(ctx=ctx) == 0
        votes = self.neighbours(self.prompt(ctx=ctx).mean(2), ctx=ctx)
        alive = first.where(votes.topk(self.keep), cache["alive"])
        cache["alive"] = alive
        return alive

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select(self.survivors(cache, ctx))


@register("rocketkv")
class RocketKV(SnapKV):
    """score(P) = max_g sum over r channels of max(q_gd M_Pd, q_gd m_Pd), for living pages.

    Two stages: the prompt is cut once, as by `snapkv` with ``keep`` pages, then each query chooses
    among what is left: by the Quest bound on the r channels with the largest sum_g |q_gd|.
    """

    paper = (
        "RocketKV: Accelerating Long-Context LLM Inference via Two-Stage KV Cache Compression"
        " (2502.14051)"
    )
    group = "channels by the sum, pages by the max"

    def __init__(
        self, keep: int = 256, channels: int = 32, observed: int = 32, reach: int = 1
    ) -> None:
        super().__init__(observed, reach, keep)
        self.channels = channels

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        own = {"max": (1, head_dim), "min": (1, head_dim)}
        return {**super().create_cache(block_size, head_dim), **own}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["max"] = cache["k"].max(1)
        cache["min"] = cache["k"].min(1)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        alive = self.survivors(cache, ctx)
        chosen = abs(q).sum(1).argtop(self.channels)
        strong, high, low = (x.gather(chosen) for x in (q, cache["max"], cache["min"]))
        bound = (strong * high).maximum(strong * low).sum(2).max(1)
        o.select(alive.where(bound, -1e30).topk() & alive)
