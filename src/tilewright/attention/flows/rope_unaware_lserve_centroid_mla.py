"""Pages by the best mean latent of their sub-blocks, without the rotated channels.

score(P) = max_b <mean_h q_h, c_Pb> on the kv_lora_rank compressed channels.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.lserve_centroid_mla import LServeCentroidMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("RopeUnawareLServeCentroidMLA",)


@register("rope_unaware_lserve_centroid_mla")
class RopeUnawareLServeCentroidMLA(LServeCentroidMLA):
    """score(P) = max_b <mean_h q_nope_h, c_kv_Pb>."""

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        plain = cache["centroids"][:, :, : self.num_plain]
        return (plain @ q[:, :, : self.num_plain].mean(1).T).max(1)
