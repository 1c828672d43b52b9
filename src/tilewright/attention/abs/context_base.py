"""Contexts of a flow's methods. Flows only pass their ``ctx`` on; tools read it."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Never, TypeVar

from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.trace import Call, Trace
from tilewright.attention.abs.value import Value
from tilewright.attention.graph import DType
from tilewright.attention.utils import Mode
from tilewright.errors import OperandError

Item = TypeVar("Item")


class TraceList(list[Item], Generic[Item]):
    """A list of a trace, for reading: ops enter the graph by being called."""

    def _refuse(self, *_arguments: Any) -> Never:
        fix = "call ops of the library in profile: a call enters the graph by itself"
        raise OperandError("a list of ctx", "a write to it", "reads", fix)

    append = extend = insert = __setitem__ = __iadd__ = _refuse


class ContextBase:
    """The trace that is under way, as the lists that tools of Vortex users read."""

    name = "context"

    def __init__(self, trace: Trace | None = None) -> None:
        self.trace = trace
        self.mode = Mode.profile
        self.vortex_dtype = DType.FLOAT32  # of every intermediate value of floating point
        self.created = trace is not None
        geometry = trace.scope.geometry if trace else None
        self.head_dim = geometry.key_dim if geometry else 0
        self.page_size = self.block_size = geometry.page_size if geometry else 0
        self.num_blocks_per_page = 1

    @property
    def tensor_list(self) -> TraceList[vTensor]:
        return TraceList(self.trace.tensors if self.trace else [])

    @property
    def op_list(self) -> TraceList[object]:
        """Op objects that were called, and definitions of infix forms, in order."""
        return TraceList(call.op for call in self._calls)

    @property
    def op_to_input_tensor_list(self) -> TraceList[list[int]]:
        return TraceList(list(call.inputs) for call in self._calls)

    @property
    def op_to_output_tensor_list(self) -> TraceList[list[int]]:
        return TraceList([call.output] for call in self._calls)

    @property
    def output_tensor_to_op_list(self) -> TraceList[int]:
        """The op that made each tensor; -1 for what was there before the first op.

        A Save is not the producer of its field: a Load sees what the last step left there.
        """
        producers = [-1] * len(self.tensor_list)
        for index, call in enumerate(self._calls):
            if not call.is_side_effect:
                producers[call.output] = index
        return TraceList(producers)

    @property
    def side_effect_op_ids(self) -> TraceList[int]:
        """Positions of the Saves in ``op_list``."""
        return TraceList(i for i, call in enumerate(self._calls) if call.is_side_effect)

    @property
    def tensor_id_to_tensor_name_map(self) -> dict[int, str]:
        names = self.trace.tensor_names if self.trace else {}
        return {tensor_id: name for name, tensor_id in names.items()}

    @property
    def _calls(self) -> list[Call]:
        return self.trace.calls if self.trace else []


@dataclass(frozen=True, slots=True)
class PageLocation:
    """``loc``: the page that ``forward_cache`` is called for. Ops know it; flows pass it on."""


class CacheContext(ContextBase):
    """Geometry of the pages that a trace is made for. Pool sizes are 0: a trace has no pool."""

    name = "cache"

    def __init__(self, trace: Trace | None = None) -> None:
        super().__init__(trace)
        self.head_num = 1
        self.max_new_tokens_per_batch = 0
        self.total_num_pages = 0
        self.total_num_blocks = 0


ctx = CacheContext()
"""A cache context without a trace, for tools that read its fields."""


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
