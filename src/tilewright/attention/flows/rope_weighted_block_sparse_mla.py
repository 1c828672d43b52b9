"""Pages by their mean latent, with a weight on the rotated channels.

score(P) = (1 - b) <mean_h q_nope_h, c_kv_P> + b <mean_h q_pe_h, c_pe_P>. The name of a flow ends in
100 b; b50 ranks like the whole logit.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.rope_aware_block_sparse_mla import RopeAwareBlockSparseMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = (
    "RopeWeightedB10",
    "RopeWeightedB15",
    "RopeWeightedB20",
    "RopeWeightedB25",
    "RopeWeightedB50",
    "RopeWeightedB75",
    "RopeWeightedB90",
    "RopeWeightedB100",
    "RopeWeightedBlockSparseMLA",
)


class RopeWeightedBlockSparseMLA(RopeAwareBlockSparseMLA):
    """score(P) = (1 - b) <q_nope, c_kv> + b <q_pe, c_pe>, queries averaged over heads."""

    B = 0.5

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        mean, centroids, split = q.mean(1), cache["centroids"], self.num_plain
        plain = centroids[:, :, :split] @ mean[:, :, :split].T
        rotated = centroids[:, :, split:] @ mean[:, :, split:].T
        return (1.0 - self.B) * plain + self.B * rotated


@register("rope_weighted_block_sparse_mla_b10")
class RopeWeightedB10(RopeWeightedBlockSparseMLA):
    """score(P) = 0.90 <q_nope, c_kv> + 0.10 <q_pe, c_pe>, queries averaged."""

    B = 0.10


@register("rope_weighted_block_sparse_mla_b15")
class RopeWeightedB15(RopeWeightedBlockSparseMLA):
    """score(P) = 0.85 <q_nope, c_kv> + 0.15 <q_pe, c_pe>, queries averaged."""

    B = 0.15


@register("rope_weighted_block_sparse_mla_b20")
class RopeWeightedB20(RopeWeightedBlockSparseMLA):
    """score(P) = 0.80 <q_nope, c_kv> + 0.20 <q_pe, c_pe>, queries averaged."""

    B = 0.20


@register("rope_weighted_block_sparse_mla_b25")
class RopeWeightedB25(RopeWeightedBlockSparseMLA):
    """score(P) = 0.75 <q_nope, c_kv> + 0.25 <q_pe, c_pe>, queries averaged."""

    B = 0.25


@register("rope_weighted_block_sparse_mla_b50")
class RopeWeightedB50(RopeWeightedBlockSparseMLA):
    """score(P) = 0.50 <q_nope, c_kv> + 0.50 <q_pe, c_pe>, queries averaged."""

    B = 0.50


@register("rope_weighted_block_sparse_mla_b75")
class RopeWeightedB75(RopeWeightedBlockSparseMLA):
    """score(P) = 0.25 <q_nope, c_kv> + 0.75 <q_pe, c_pe>, queries averaged."""

    B = 0.75


@register("rope_weighted_block_sparse_mla_b90")
class RopeWeightedB90(RopeWeightedBlockSparseMLA):
    """score(P) = 0.10 <q_nope, c_kv> + 0.90 <q_pe, c_pe>, queries averaged."""

    B = 0.90


@register("rope_weighted_block_sparse_mla_b100")
class RopeWeightedB100(RopeWeightedBlockSparseMLA):
    """score(P) = 0.00 <q_nope, c_kv> + 1.00 <q_pe, c_pe>, queries averaged."""

    B = 1.0
