"""What a step gives back to the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.page_list import PageLists
from tilewright.attention.backends.reference.row import RowResult
from tilewright.attention.backends.reference.softmax import Partial, merge_partials
from tilewright.errors import AttentionError


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
