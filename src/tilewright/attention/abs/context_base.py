"""What every context of a flow has. Flows only pass their ``ctx`` on; tools read it."""

from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.trace import Trace
from tilewright.attention.graph import DType, Op
from tilewright.attention.utils import Mode

__all__ = ("ContextBase",)


class ContextBase:
    """The trace that is under way, as the lists that tools of Vortex users read."""

    name = "context"

    def __init__(self, trace: Trace | None = None) -> None:
        self.trace = trace
        self.mode = Mode.profile
        self.vortex_dtype = DType.FLOAT32
        self.created = trace is not None

    @property
    def tensor_list(self) -> list[vTensor]:
        return list(self.trace.tensors) if self.trace else []

    @property
    def op_list(self) -> list[Op]:
        return [call.op for call in self.trace.calls] if self.trace else []

    @property
    def op_to_input_tensor_list(self) -> list[list[int]]:
        return [list(call.inputs) for call in self.trace.calls] if self.trace else []

    @property
    def op_to_output_tensor_list(self) -> list[list[int]]:
        return [[call.output] for call in self.trace.calls] if self.trace else []

    @property
    def output_tensor_to_op_list(self) -> list[int]:
        """The op that made each tensor; -1 for what was there before the first op."""
        producers = [-1] * len(self.tensor_list)
        for index, outputs in enumerate(self.op_to_output_tensor_list):
            producers[outputs[0]] = index
        return producers

    @property
    def side_effect_op_ids(self) -> list[int]:
        """Ops whose values are saved as state."""
        if self.trace is None:
            return []
        saved = {self.trace.id_of(write.value) for write in self.trace.state_writes}
        return [i for i, call in enumerate(self.trace.calls) if call.output in saved]

    @property
    def tensor_id_to_tensor_name_map(self) -> dict[int, str]:
        names = self.trace.tensor_names if self.trace else {}
        return {tensor_id: name for name, tensor_id in names.items()}
