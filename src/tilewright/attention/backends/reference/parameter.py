"""Learned parameters as arrays of the layer that runs."""

import numpy as np

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.graph import Graph, Parameter
from tilewright.errors import AttentionError


def layer_table(graph: Graph, namespace: Namespace, name: str, layer: int) -> Array:
    """Values of one layer, rounded to the parameter's type: [1, 1, (heads,) N, K]."""
    (parameter,) = (item for item in graph.parameters if item.name == name)
    values = np.asarray(parameter.values)
    if parameter.num_layers:
        values = values[_row_of(parameter, layer)]
    table = namespace.rounded(namespace.array(values), parameter.type.dtype)
    return namespace.xp.reshape(table, (1, 1, *parameter.type.shape))


def _row_of(parameter: Parameter, layer: int) -> int:
    row = parameter.layer_rows.get(layer) if parameter.layer_rows else layer
    if row is None or not 0 <= row < parameter.num_layers:
        known = sorted(parameter.layer_rows) or f"0..{parameter.num_layers - 1}"
        raise AttentionError(
            f"parameter {parameter.name!r}",
            f"layer {layer}",
            f"a layer that it has a table for: {known}",
            "give it a table for this layer, or keep the layer dense",
        )
    return row
