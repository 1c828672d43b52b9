"""Pages by their mean latent against one learned mixture of all query heads.

score(P) = <W q_flat, c_P>, where q_flat are all heads in a row and W [latent, heads * latent] folds
the learned projections of queries and keys. Without weights W is made of identities, which is the
sum over heads and nothing learned.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tilewright.attention.abs import ContextBase, FieldMap, Parameter, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.mla_centroid import RopeAwareBlockSparseMLA
from tilewright.attention.flows.weights import Weights
from tilewright.attention.indexer import GeMM

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("learned_block_sparse_mla")
class LearnedBlockSparseMLA(RopeAwareBlockSparseMLA):
    """score(P) = <W q_flat, c_P>.

    Table ``query`` is [latent, heads * latent], or has layers first.
    """

    group = "learned mixture of queries"

    def __init__(self, weights: Mapping[str, npt.ArrayLike] | None = None) -> None:
        super().__init__()
        self.given = weights
        self.mixture = GeMM()

    @property
    def weights_label(self) -> str:
        return "identity, the sum over heads" if self.given is None else "given"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        _, heads, width = q.shape
        mixed: Value = self.mixture(q.reshape(1, heads * width), self._table(heads, width))
        return cache["centroids"] @ mixed

    def _table(self, heads: int, width: int) -> Parameter:
        if self.given is None:
            return Parameter(np.tile(np.eye(width, dtype=np.float32), (1, heads)))
        return Weights(self.given).matrix("query", width, heads * width)
