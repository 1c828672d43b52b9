"""`vFlowMLA`: the class that an author of latent attention derives from."""

from typing import Any

from tilewright.attention.flow.flow import FlowBase
from tilewright.attention.graph import DType, FlowKind, Geometry

__all__ = ("vFlowMLA",)


class vFlowMLA(FlowBase):
    """One latent head for all query heads.

    ``cache["latent"]`` is [., block_size, kv_lora_rank + qk_rope_head_dim], laid out [kv_c | k_pe];
    ``q`` is the absorbed query [1, H, latent_dim], so that a dot product is the whole logit.
    """

    kind = FlowKind.MLA
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    latent_dim: int | None = None

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        """Names and inner shapes (or `FieldSpec`) of the fields kept for each page."""
        del block_size, kv_lora_rank, qk_rope_head_dim
        return {}

    def create_request_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        """Names and inner shapes of what each request in flight has once, SLOTTED."""
        del block_size, kv_lora_rank, qk_rope_head_dim
        return {}

    def initialize(
        self,
        block_size: int,
        kv_lora_rank: int,
        qk_rope_head_dim: int,
        kv_cache_dtype: object,
        q_data_type: object,
        intermediate_dtype: object = DType.BFLOAT16,
    ) -> None:
        self.kv_lora_rank = kv_lora_rank
        self.qk_rope_head_dim = qk_rope_head_dim
        self.latent_dim = kv_lora_rank + qk_rope_head_dim
        dtypes = (kv_cache_dtype, q_data_type, intermediate_dtype)
        declared = self.create_cache(block_size, kv_lora_rank, qk_rope_head_dim)
        reserved = {"latent": (block_size, self.latent_dim)}
        requested = self.create_request_cache(block_size, kv_lora_rank, qk_rope_head_dim)
        self._settle(declared, reserved, requested=requested, block_size=block_size, dtypes=dtypes)

    def initialize_for(self, geometry: Geometry) -> None:
        dtypes = (geometry.kv_dtype, geometry.query_dtype, geometry.field_dtype)
        self.initialize(geometry.page_size, geometry.value_dim, geometry.rope_dim, *dtypes)
