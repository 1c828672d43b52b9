"""Arrays that a caller hands over: converted, checked for their shape, rounded to their type."""

from collections.abc import Mapping
from typing import Any

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.shared import Shared
from tilewright.errors import AttentionError


def checked_array(shared: Shared, where: str, values: Any, shape: tuple[int, ...]) -> Array:
    array = shared.namespace.array(values)
    if tuple(array.shape) != shape:
        raise AttentionError(where, f"shape {tuple(array.shape)}", f"{shape}", "reshape it")
    return array


def checked_inputs(shared: Shared, request: str, found: Any, num_tokens: int) -> dict[str, Array]:
    """Every input that the flow declares: [tokens, heads, r, c]. An array alone is the query."""
    given = found if isinstance(found, Mapping) else {"q": found}
    declared = dict(shared.graph.inputs)
    if set(given) != set(declared):
        raise AttentionError(
            f"request {request!r}", f"inputs {sorted(given)}", f"{sorted(declared)}", "pass these"
        )
    inputs = {}
    for name, value_type in declared.items():
        shape = (num_tokens, shared.num_kv_heads, *value_type.shape)
        array = checked_array(shared, f"request {request!r} {name}", given[name], shape)
        inputs[name] = shared.namespace.rounded(array, value_type.dtype)
    return inputs


def checked_query(shared: Shared, request: str, queries: Any, num_tokens: int) -> Array:
    """Queries of prompt tokens: [tokens, heads, query heads, key_dim]."""
    geometry = shared.graph.geometry
    shape = (num_tokens, shared.num_kv_heads, geometry.query_heads, geometry.key_dim)
    array = checked_array(shared, f"request {request!r} q", queries, shape)
    return shared.namespace.rounded(array, geometry.query_dtype)
