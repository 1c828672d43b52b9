"""Dot products on a few channels of keys; with pages of one token these are the published rules."""

from collections.abc import Sequence

import numpy as np

from tilewright.attention.abs import BranchSpec, ContextBase, FieldMap, OutputSlot, Parameter, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow
from tilewright.attention.graph import DType, Span
from tilewright.attention.indexer import Cast, ReservedPages, TokenCount
from tilewright.errors import FlowInitError

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("sparq")
class SparQ(ScoredFlow):
    """score(P) = mean_g of the mass of P on r channels; the rest enters as the mean value.

    The r channels with the largest sum_g |q_gd| give logits q_g . k_i / sqrt(D |q_g|_r / |q_g|),
    where |.| are sums of absolute values over all and over the r channels. Softmax over all tokens
    gives an estimated mass. With a_g = the estimated mass of what is read, the output is
    a_g attention + (1 - a_g) mean of all values in complete pages.
    """

    paper = "SparQ Attention: Bandwidth-Efficient LLM Inference (2312.04985)"
    group = "mean of masses"

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.channels = channels
        self.reserved = ReservedPages()
        self.tokens = TokenCount()

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        self.page_tokens = block_size
        return {"mean_value": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["mean_value"] = cache["v"].mean(1)

    def masses(self, q: Value, cache: FieldMap) -> Value:
        """[S, 1, H]: the estimated share of each page, for each query head."""
        chosen = abs(q).sum(1).argtop(self.channels)
        strong = q.gather(chosen)
        share = abs(strong).sum(2) / abs(q).sum(2)
        heat = (share * float(q.shape[2])).sqrt()
        logits = (cache["k"].gather(chosen) @ strong.T) / heat.T
        weights = (logits - logits.max(1).max(0, span=Span.ALL)).exp().sum(1)
        return weights / weights.sum(0, span=Span.ALL)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.masses(q, cache).mean(2)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        masses = self.masses(q, cache)
        chosen = masses.mean(2).topk()
        read = (chosen | self.reserved(ctx=ctx)).where(masses, 0.0).sum(0, span=Span.ALL).T
        complete = self.tokens(ctx=ctx) == self.page_tokens
        even = complete.where(0.0 * masses, -1e30)  # every complete page weighs the same
        o.combine(
            [
                BranchSpec(chosen, gate=read),
                BranchSpec(gate=1.0 - read, logits=even, values=cache["mean_value"]),
            ]
        )


@register("double_sparsity")
class DoubleSparsity(ScoredFlow):
    """score(P) = max over g and i of <q_g, k_i> on label channels.

    That is over heads g and tokens i of P; the label channels were chosen offline.
    """

    paper = "Post-Training Sparse Attention with Double Sparsity (2408.07092)"
    group = "max of products"

    def __init__(
        self, channels: int = 16, labels: Sequence[int] | None = None, seed: int = 0
    ) -> None:
        """Labels come from calibration; without them ``channels`` of them are drawn."""
        super().__init__()
        self.channels = channels if labels is None else len(labels)
        self.given = None if labels is None else tuple(labels)
        self.seed = seed

    @property
    def weights_label(self) -> str:
        return f"seeded random (seed {self.seed})" if self.given is None else "given"

    def labels(self, width: int) -> tuple[int, ...]:
        """Channels of a head, ascending."""
        if self.given is not None:
            return self.given
        if self.channels > width:
            found, expected = f"{self.channels} channels", f"at most {width}"
            raise FlowInitError("double_sparsity", found, expected, "ask for fewer")
        drawn = np.random.default_rng(self.seed).choice(width, self.channels, replace=False)
        return tuple(sorted(int(channel) for channel in drawn))

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        outside = [label for label in self.labels(head_dim) if not 0 <= label < head_dim]
        if outside:
            found, expected = f"labels {outside}", f"channels 0 to {head_dim - 1}"
            raise FlowInitError("double_sparsity", found, expected, "calibrate for this model")
        return {"labels": (block_size, self.channels)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["labels"] = self._cut(cache["k"], ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return (cache["labels"] @ self._cut(q, ctx).T).max(1).max(2)

    def _cut(self, x: Value, ctx: ContextBase) -> Value:
        table = Parameter(np.array([self.labels(x.shape[2])], dtype=np.float32))
        return x.gather(Cast(DType.INT32)(table, ctx=ctx))
