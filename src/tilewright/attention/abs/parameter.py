"""`Parameter`: a learned constant of a flow."""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.graph import FORMAT, DType, Leading, ValueType
from tilewright.attention.graph import Parameter as GraphParameter
from tilewright.errors import FlowInitError

__all__ = ("Parameter",)


class Parameter(vTensor):
    """``value`` is [N, K], or [L, N, K] or [L, H, N, K] with the layer axis first.

    ``layer_lookup`` maps a global layer number to a row of the table; the default is identity. A
    layer that has no row is an error.
    """

    def __init__(self, value: Any, layer_lookup: Mapping[int, int] | None = None) -> None:
        self.value = _as_array(value)
        if self.value.ndim not in (2, 3, 4):
            found = f"a value of shape {self.value.shape}"
            expected = "[N, K], [L, N, K] or [L, H, N, K]"
            raise FlowInitError("Parameter", found, expected, "reshape it")
        self.num_layers = 0 if self.value.ndim == 2 else int(self.value.shape[0])
        rows, columns = map(int, self.value.shape[-2:])
        super().__init__((0, rows, columns), DType.FLOAT32, None, FORMAT.PARAMETER)
        self.layer_lookup = MappingProxyType(dict(layer_lookup or {}))
        self._check_lookup()

    def gather(self, cur_layer: int = 0) -> npt.NDArray[np.float32]:
        """The table of one layer."""
        if self.num_layers == 0:
            return self.value
        row = self.layer_lookup.get(cur_layer, -1) if self.layer_lookup else cur_layer
        if not 0 <= row < self.num_layers:
            expected = f"one of {sorted(self.layer_lookup) or f'0 to {self.num_layers - 1}'}"
            fix = "give the parameter a table for that layer, or keep the layer dense"
            raise FlowInitError("Parameter", f"layer {cur_layer}", expected, fix)
        layer: npt.NDArray[np.float32] = self.value[row]
        return layer

    def materialize(self, device: object = None, dtype: object = None) -> "Parameter":
        """Itself: values are kept in float32 on the host, and a backend moves them."""
        del device, dtype
        return self

    @property
    def value_type(self) -> ValueType:
        shape = tuple(map(int, self.value.shape[1 if self.num_layers else 0 :]))
        return ValueType(FORMAT.PARAMETER, Leading.NONE, shape, DType.FLOAT32)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of shape, lookup and values. Values do not change once a parameter is made."""
        lookup = sorted(self.layer_lookup.items())
        made = hashlib.sha256(f"{self.value.shape} {lookup}".encode())
        made.update(self.value.data)
        return made.hexdigest()

    def for_graph(self, name: str) -> GraphParameter:
        return GraphParameter(
            name, self.value_type, self.num_layers, self.value, self.digest, self.layer_lookup
        )

    def _check_lookup(self) -> None:
        for layer, row in self.layer_lookup.items():
            if not 0 <= row < self.num_layers:
                found, expected = f"row {row} for layer {layer}", f"0 to {self.num_layers - 1}"
                raise FlowInitError("Parameter", found, expected, "correct layer_lookup")


def _as_array(value: Any) -> npt.NDArray[np.float32]:
    """float32 values of an array, a nested list or a torch tensor."""
    detached = value.detach() if hasattr(value, "detach") else value
    if hasattr(detached, "float"):  # a torch tensor: NumPy has no bfloat16 of its own
        detached = detached.float().cpu().numpy()
    try:
        return np.ascontiguousarray(detached, dtype=np.float32)
    except (TypeError, ValueError) as error:
        fix = "pass a NumPy array, a torch tensor or nested lists"
        raise FlowInitError("Parameter", repr(type(value)), "numbers", fix) from error
