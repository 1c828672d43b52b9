"""Dot products on a few label channels that were chosen offline.

score(P) = max over heads g and tokens i of P of the sum over label channels of q_gd k_id. With
pages of one token this is the published rule.
"""

from collections.abc import Sequence

import numpy as np

from tilewright.attention.abs import ContextBase, FieldMap, Parameter, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow
from tilewright.attention.graph import DType
from tilewright.attention.indexer import Cast
from tilewright.errors import FlowInitError

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("double_sparsity")
class DoubleSparsity(ScoredFlow):
    """score(P) = max over g and i of <q_g, k_i> on label channels."""

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
