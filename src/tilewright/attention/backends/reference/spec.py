"""What a session is built for."""

import math
from dataclasses import dataclass, field

from tilewright.attention.graph import FlowKind, Geometry
from tilewright.attention.paging import PagingSpec
from tilewright.attention.planner import PlanSpec
from tilewright.errors import AttentionError


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """Sizes of the model and of the pool, and how a step is planned.

    ``scale`` of logits is 1/sqrt(key_dim) by default; a model with absorbed queries (MLA) states
    its own. A selection serves ``update_interval`` steps. State can be rewound by as many tokens
    as ``rewind_window`` says.
    """

    num_kv_heads: int
    num_pages: int
    num_layers: int = 1
    blocks_per_page: int = 1
    scale: float | None = None
    plan: PlanSpec = field(default_factory=PlanSpec)
    update_interval: int = 1
    rewind_window: int = 16

    def __post_init__(self) -> None:
        for name in ("num_kv_heads", "num_layers", "blocks_per_page", "update_interval"):
            if getattr(self, name) < 1:
                raise AttentionError(
                    f"session.{name}", str(getattr(self, name)), ">= 1", "raise it"
                )
        if self.rewind_window < 0:
            raise AttentionError(
                "session.rewind_window", str(self.rewind_window), ">= 0", "raise it"
            )

    def paging(self, geometry: Geometry) -> PagingSpec:
        """The graph's pages are blocks here: pages of the pool may hold several of them."""
        return PagingSpec(
            num_pages=self.num_pages,
            page_size=geometry.page_size * self.blocks_per_page,
            block_size=geometry.page_size,
        )

    def scale_for(self, geometry: Geometry) -> float:
        if geometry.kind is FlowKind.MLA and self.num_kv_heads != 1:
            raise AttentionError(
                "session.num_kv_heads",
                str(self.num_kv_heads),
                "1 under MLA: all query heads share one latent",
                "put them in query_heads",
            )
        return 1.0 / math.sqrt(geometry.key_dim) if self.scale is None else self.scale
