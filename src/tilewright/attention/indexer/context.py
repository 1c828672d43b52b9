"""The context of forward_indexer, and the work lists that tools read from it."""

from dataclasses import dataclass, field
from types import MappingProxyType

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value
from tilewright.errors import OperandError

RUN_FIELDS = MappingProxyType(
    {
        "num_kv_heads": 1,
        "max_bs": 0,
        "max_num_workloads": 0,
        "num_sms": 0,
        "max_num_pages": 0,
        "max_num_pages_per_request": 0,
        "max_num_blocks": 0,
        "max_num_blocks_per_request": 0,
        "topk_val": 0,
        "max_topk_val": 0,
        "topk_ratio": 0.0,
        "block_reserved_bos": 1,
        "block_reserved_eos": 1,
    }
)
"""What only a run knows, and what a context without a trace has for it."""


@dataclass
class MetaData:
    """Empty while a flow is traced: only a run has rows."""

    batch_size: int = 0
    dense_kv_indptr: list[int] = field(default_factory=list)
    dense_kv_indices: list[int] = field(default_factory=list)
    sparse_kv_indptr: list[int] = field(default_factory=list)
    sparse_kv_indices: list[int] = field(default_factory=list)
    block_tables: list[list[int]] = field(default_factory=list)
    seq_lens: list[int] = field(default_factory=list)
    kv_last_page_len: list[int] = field(default_factory=list)


class IndexerContext(ContextBase):
    """Geometry that a trace is made for. A flow that reads what only a run knows is refused."""

    name = "indexer"

    def __init__(self, trace: Trace | None = None) -> None:
        super().__init__(trace)
        self.group_size = trace.scope.geometry.query_heads if trace else 0
        self.num_qo_heads = self.group_size
        self.workload_chunk_size = self.num_pages_per_workload = 1
        self.sparse_attention_name = trace.flow if trace else ""
        self.impl_backend = self.vortex_attention_backend = "reference"
        self.use_tensor_core = False
        self.query_arg_names = ("q",)
        self.compilation_cache_dir: str | None = None
        self.metadata = MetaData()
        self.inputs: dict[str, Value] = {}  # what the flow declared in create_inputs

    def __getattr__(self, name: str) -> int | float:
        if name not in RUN_FIELDS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if self.trace is None:
            return RUN_FIELDS[name]
        found, expected = "a read of what only a run knows", "fields of the geometry"
        fix = "a flow is traced once for all budgets; keep the number in the flow itself"
        raise self.trace.located(OperandError(f"ctx.{name}", found, expected, fix))


_EMPTY = IndexerContext()


def get_ctx() -> IndexerContext:
    """A context without a trace, for tools that read its fields."""
    return _EMPTY
