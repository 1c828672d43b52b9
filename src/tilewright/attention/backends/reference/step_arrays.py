"""Arrays that a model and a step exchange: operands, checked and rounded, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference.attend import Partial, merge_partials
from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.pages import PageLists
from tilewright.attention.backends.reference.row import RowResult
from tilewright.attention.backends.reference.shared import Shared, request_error
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
        found_text = f"inputs {sorted(given)}"
        raise request_error(request, found_text, f"{sorted(declared)}", "pass these")
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


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What attention gave one request: [tokens, heads, query heads, value_dim] and [.., heads]."""

    output: Array
    log_sum_exp: Array | None  # None: several softmaxes were added
    lists: tuple[PageLists, ...]  # pages read, by token

    def pages(self, token: int, head: int) -> npt.NDArray[np.int64]:
        """Logical pages that a token read in a KV head, ascending."""
        found = self.lists[token]
        return np.asarray(found.pages[head, : found.counts[head]])


def gather_rows(
    namespace: Namespace, rows: list[RowResult], residual: tuple[Any, Any] | None
) -> StepOutput:
    """The tokens of one request together, merged with attention over tokens kept elsewhere."""
    xp = namespace.xp
    output = xp.stack([row.output for row in rows], axis=0)
    sums = [row.log_sum_exp for row in rows]
    lse = None if any(found is None for found in sums) else xp.stack(sums, axis=0)
    lists = tuple(row.read for row in rows)
    if residual is None:
        return StepOutput(output, lse, lists)
    if lse is None:
        raise AttentionError(
            "residual", "an output of several softmaxes", "one softmax", "merge it outside"
        )
    with namespace.quiet():
        other, other_lse = (namespace.array(part) for part in residual)
        merged = merge_partials(
            xp, Partial.from_output(output, lse, xp), Partial.from_output(other, other_lse, xp)
        )
        return StepOutput(merged.output(xp), merged.log_sum_exp(xp), lists)
