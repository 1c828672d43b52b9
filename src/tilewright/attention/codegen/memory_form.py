"""Arrays in the form that kernels read: tables of learned parameters, halves of bytes."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import DType, Graph, Parameter, ValueType
from tilewright.errors import AttentionError

_TABLE_DTYPES = [dtype for dtype in DType if dtype not in (DType.INT4, DType.BOOL)]


def parameter_tables(graph: Graph, layer: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arguments ``<name>_table`` of a layer, in the types that the parameters have."""
    return {
        f"{item.name.replace('.', '_')}_table": _table(item, layer) for item in graph.parameters
    }


def _table(parameter: Parameter, layer: int) -> npt.NDArray[Any]:
    values = np.asarray(parameter.values)
    if parameter.num_layers:
        row = parameter.layer_rows.get(layer) if parameter.layer_rows else layer
        if row is None or not 0 <= row < parameter.num_layers:
            known = sorted(parameter.layer_rows) or f"0..{parameter.num_layers - 1}"
            where, expected = f"parameter {parameter.name!r}", f"a layer of its tables: {known}"
            fix = "give it a table for this layer, or keep the layer dense"
            raise AttentionError(where, f"layer {layer}", expected, fix)
        values = values[row]
    shaped = values.reshape(parameter.type.shape)
    if parameter.type.dtype not in _TABLE_DTYPES:
        where, found = f"parameter {parameter.name!r}", str(parameter.type.dtype)
        raise AttentionError(where, found, f"one of {', '.join(_TABLE_DTYPES)}", "keep it wider")
    name = parameter.type.dtype.array_name
    return np.ascontiguousarray(shaped.astype(getattr(ml_dtypes, name, name)))


def packed(values: npt.NDArray[Any], kind: ValueType) -> npt.NDArray[Any]:
    """Pack entries [..., r, c] of one element a byte as kernels take them: four bits two a byte."""
    if kind.dtype is not DType.INT4:
        return values
    flat = values.reshape(*values.shape[:-2], -1).astype(np.uint8) & 15
    if flat.shape[-1] % 2:
        flat = np.concatenate([flat, np.zeros_like(flat[..., :1])], axis=-1)
    return np.ascontiguousarray(flat[..., 0::2] | (flat[..., 1::2] << 4))
