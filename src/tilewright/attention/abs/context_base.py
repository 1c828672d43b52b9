"""What every context of a flow has. Flows only pass their ``ctx`` on; tools read it."""

from typing import Any, Generic, Never, TypeVar

from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.trace import Call, Trace
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
