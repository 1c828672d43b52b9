"""The context of forward_cache."""

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.trace import Trace


class CacheContext(ContextBase):
    """Geometry of the pages that a trace is made for. Pool sizes are 0: a trace has no pool."""

    name = "cache"

    def __init__(self, trace: Trace | None = None) -> None:
        super().__init__(trace)
        geometry = trace.scope.geometry if trace else None
        self.head_num = 1
        self.head_dim = geometry.key_dim if geometry else 0
        self.page_size = geometry.page_size if geometry else 0
        self.block_size = self.page_size
        self.num_blocks_per_page = 1
        self.max_new_tokens_per_batch = 0
        self.total_num_pages = 0
        self.total_num_blocks = 0


ctx = CacheContext()
"""A context without a trace, for tools that read its fields."""


def get_ctx() -> CacheContext:
    return ctx
