"""Pages by their mean latent, without the rotated channels.

score(P) = <mean_h q_h, c_P> on the kv_lora_rank compressed channels.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.rope_aware_block_sparse_mla import RopeAwareBlockSparseMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("RopeUnawareBlockSparseMLA",)


@register("rope_unaware_block_sparse_mla")
class RopeUnawareBlockSparseMLA(RopeAwareBlockSparseMLA):
    """score(P) = <mean_h q_nope_h, c_kv_P>."""

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        plain = cache["centroids"][:, :, : self.num_plain]
        return plain @ q[:, :, : self.num_plain].mean(1).T
