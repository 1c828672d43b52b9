"""`vTensor`: what a value looks like while a flow is traced. Metadata only."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import FORMAT, DType, Leading, ValueType
from tilewright.attention.graph import Parameter as GraphParameter
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import FlowInitError


class vTensor:
    """Shape, element type and format. The leading size is a placeholder, 0 while tracing.

    >>> vTensor((0, 3, 128)).padded_shape
    (0, 4, 128)
    """

    def __init__(
        self,
        shape: Sequence[int] = (),
        dtype: object = DType.BFLOAT16,
        device: object = None,
        _format: FORMAT = FORMAT.BATCHED,
        tensor_id: int = -1,
        padded_shape: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(_format, FORMAT):
            raise TypeError(f"_format must be a FORMAT, not {_format!r}")
        if isinstance(tensor_id, bool) or not isinstance(tensor_id, int):
            raise TypeError(f"tensor_id must be an int, not {tensor_id!r}")
        self.shape = _sizes("shape", shape)
        self.padded_shape = _padded(self.shape)
        if padded_shape is not None:
            self.padded_shape = _sizes("padded_shape", padded_shape)
        self.dtype = resolve_dtype(dtype)
        self.device = device
        self._format = _format
        self.tensor_id = tensor_id

    def dim(self) -> int:
        return len(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def size(self, dim: int | None = None) -> tuple[int, ...] | int:
        return self.shape if dim is None else self.shape[dim]

    def needs_padding(self) -> bool:
        """Whether an inner size is no power of two. Nothing a flow computes depends on it."""
        return self.padded_shape != self.shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, {self.dtype}, {self._format.name})"


def as_vtensor(
    x: object = None,
    _format: FORMAT = FORMAT.BATCHED,
    tensor_id: int = -1,
    *,
    shape: Sequence[int] | None = None,
    dtype: object = None,
    device: object = None,
) -> vTensor:
    """Re-tag a vTensor in place, or describe a real tensor, or build one from keywords."""
    if isinstance(x, vTensor):
        x._format = _format
        x.tensor_id = tensor_id
        return x
    shape = shape if shape is not None else getattr(x, "shape", None)
    if shape is None:
        raise TypeError(f"as_vtensor needs a tensor or shape=, not {x!r}")
    dtype = dtype if dtype is not None else getattr(x, "dtype", DType.BFLOAT16)
    device = device if device is not None else getattr(x, "device", None)
    return vTensor(tuple(shape), dtype, device, _format, tensor_id)


def _sizes(name: str, sizes: Sequence[int]) -> tuple[int, ...]:
    if any(isinstance(size, bool) or not isinstance(size, int) for size in sizes):
        raise TypeError(f"{name} must hold ints, not {tuple(sizes)!r}")
    return tuple(sizes)


def _padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Inner sizes rounded up to powers of two."""
    return tuple(
        size if axis == 0 or size < 1 else 1 << (size - 1).bit_length()
        for axis, size in enumerate(shape)
    )


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
        for layer, row in self.layer_lookup.items():
            if not 0 <= row < self.num_layers:
                found, expected = f"row {row} for layer {layer}", f"0 to {self.num_layers - 1}"
                raise FlowInitError("Parameter", found, expected, "correct layer_lookup")

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
