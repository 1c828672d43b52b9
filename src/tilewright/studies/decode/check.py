"""Whether a decode step on a machine gave what the reference gives.

Sums of floats depend on their order, and the machine has another one than the reference: a tile at
a time. So the rule for selections is: *a row may read another page than the reference only for a
near tie*. As many pages are read; each page that it reads instead scores at least the lowest score
that the reference takes, less 4 ulp of it; each page that it leaves out scores at most 4 ulp more
than that. The output of such a row is compared with attention over the pages that it did read. A
flow whose pages have no score of their own (several branches, combined choices, a choice for each
query head) reads the very pages of the reference.
"""

import numpy as np

from tilewright.attention.graph import FlowKind, Graph
from tilewright.attention.planner import Reserved
from tilewright.studies.decode.data import Array, Int64s, ReferenceStep
from tilewright.studies.decode.step import StepTiming
from tilewright.units import ROW_TOLERANCES

NEAR_ULP = 4


def value_error(
    graph: Graph, timing: StepTiming, expected: ReferenceStep, reserved: Reserved
) -> float:
    """The worst error of an output relative to its norm; infinite if wrong pages were read."""
    output = timing.result.output
    if output is None:
        return float("inf")
    wanted = expected.output.copy()
    for row, pages in enumerate(timing.result.pages):
        if np.array_equal(pages, expected.pages[row]):
            continue
        if not is_near_tie(pages, expected.pages[row], expected.scores[row], reserved):
            return float("inf")
        wanted[row] = _attend(graph, expected, row, pages)
    norm = np.linalg.norm(wanted, axis=-1)
    error = np.linalg.norm(output - wanted, axis=-1) / np.maximum(norm, 1e-30)
    return float(np.max(np.nan_to_num(error, nan=np.inf)))


def value_tolerance(graph: Graph) -> float:
    """Return the greatest `value_error` of right values; types of a byte or less have bf16's."""
    return ROW_TOLERANCES.get(graph.geometry.kv_dtype.short_name, ROW_TOLERANCES["bf16"])


def is_near_tie(found: Int64s, expected: Int64s, scores: Array | None, reserved: Reserved) -> bool:
    """Whether other pages than expected are as good as those, by the rule above.

    >>> scores = np.array([9, 1, 1 + 2**-22, 0.5, 9], dtype=np.float32)
    >>> is_near_tie(np.array([0, 1, 4]), np.array([0, 2, 4]), scores, Reserved(1, 1))
    True
    >>> is_near_tie(np.array([0, 3, 4]), np.array([0, 2, 4]), scores, Reserved(1, 1))
    False
    """
    if scores is None or len(found) != len(expected):
        return False
    inside = (expected >= reserved.first) & (expected < len(scores) - reserved.last)
    limit = np.min(scores[expected[inside]], initial=np.float32(np.inf))
    near = NEAR_ULP * np.spacing(np.abs(limit))
    added, left_out = np.setdiff1d(found, expected), np.setdiff1d(expected, found)
    is_good = np.all(scores[added] >= limit - near)
    return bool(np.isfinite(limit) and is_good and np.all(scores[left_out] <= limit + near))


def _attend(graph: Graph, expected: ReferenceStep, row: int, pages: Int64s) -> Array:
    """Softmax over the tokens of some pages of a row, in float64."""
    sizes, values = graph.geometry, expected.values
    heads = len(expected.output) // len(values.new_tokens[next(iter(values.new_tokens))])
    request, head = divmod(row, heads)
    count = expected.num_tokens[request]
    kept = {}
    for name, new in values.new_tokens.items():
        tokens = values.fields[name][request][head].astype(np.float64)
        flat = tokens.reshape(-1, tokens.shape[-1])
        flat[count - 1] = new[request, head]
        kept[name] = flat
    tokens = (pages[:, None] * sizes.page_size + np.arange(sizes.page_size)).reshape(-1)
    tokens = tokens[tokens < count]
    is_mla = sizes.kind is FlowKind.MLA
    keys = kept["latent" if is_mla else "k"][tokens]
    weighted = kept["latent" if is_mla else "v"][tokens][:, : sizes.value_dim]
    logits = values.inputs["q"][request, head].astype(np.float64) @ keys.T * sizes.key_dim**-0.5
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: Array = weights @ weighted / weights.sum(axis=-1, keepdims=True)
    return found
