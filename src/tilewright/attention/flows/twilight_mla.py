"""Top-p on top of another flow over latents: `twilight` for MLA.

The scale of the logits belongs to the model; it is 1 / sqrt(latent width) unless given.
"""

from tilewright.attention.flow import FlowBase, register, vFlowMLA
from tilewright.attention.flows.twilight import PrunedFlow
from tilewright.attention.graph import Geometry

__all__ = ("TwilightMLA",)


@register("twilight_mla")
class TwilightMLA(PrunedFlow, vFlowMLA):
    """Smallest part of the base's choice with an estimated mass of at least p."""

    tokens = "latent"

    def __init__(
        self, p: float = 0.95, base: FlowBase | str = "quest_mla", scale: float | None = None
    ) -> None:
        super().__init__(p, base, scale)

    def initialize_for(self, geometry: Geometry) -> None:
        self.base.initialize_for(geometry)
        super().initialize_for(geometry)

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, object]:
        return self.fields(block_size, kv_lora_rank + qk_rope_head_dim)
