"""The context of forward_indexer."""

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value
from tilewright.attention.indexer.metadata import MetaData

__all__ = ("Context", "get_ctx")


class Context(ContextBase):
    """Geometry and budget that a trace is made for. What only a run knows is 0 or empty."""

    name = "indexer"

    def __init__(self, trace: Trace | None = None) -> None:
        super().__init__(trace)
        geometry = trace.scope.geometry if trace else None
        self.group_size = geometry.query_heads if geometry else 0
        self.num_kv_heads = 1
        self.num_qo_heads = self.group_size
        self.head_dim = geometry.key_dim if geometry else 0
        self.page_size = geometry.page_size if geometry else 0
        self.block_size = self.page_size
        self.num_blocks_per_page = 1
        self.workload_chunk_size = self.num_pages_per_workload = 1
        self.max_bs = self.max_num_workloads = self.num_sms = 0
        self.max_num_pages = self.max_num_pages_per_request = 0
        self.max_num_blocks = self.max_num_blocks_per_request = 0
        self.topk_val = self.max_topk_val = 0
        self.topk_ratio = 0.0
        self.block_reserved_bos = self.block_reserved_eos = 1
        self.sparse_attention_name = trace.flow if trace else ""
        self.impl_backend = self.vortex_attention_backend = "reference"
        self.use_tensor_core = False
        self.query_arg_names = ("q",)
        self.compilation_cache_dir: str | None = None
        self.metadata = MetaData()
        self.inputs: dict[str, Value] = {}  # what the flow declared in create_inputs


_EMPTY = Context()


def get_ctx() -> Context:
    """A context without a trace, for tools that read its fields."""
    return _EMPTY
