"""Pages by their mean latent, c_P; the absorbed query is compared with some of its channels.

A latent has compressed channels, c_kv, and rotated ones, c_pe; a query has q_nope and q_pe.
"""

from typing import ClassVar

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.centroid import Centroids
from tilewright.attention.flows.ready import ScoredFlowMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


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
