"""What a decode step keeps of dense attention, judged by the outputs that it computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.records.attention.run import NeedleFigures
from tilewright.studies.attention_data import RequestData

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.float32]
Pages = Sequence[npt.NDArray[np.int64]]


class KeptAttention(NamedTuple):
    """What outputs keep of dense attention; means over rows and query heads."""

    mass: float  # share of the dense softmax on the pages that were read
    output_error: float  # norm of the difference over the norm of the dense output
    needles: NeedleFigures


@dataclass(frozen=True, slots=True)
class _DenseRow:
    """One row of dense attention in float64."""

    output: Floats  # [query heads, value channels]
    page_mass: Floats  # [query heads, pages]


def judge_step(
    requests: Sequence[RequestData], output: Array, pages: Pages, *, page_size: int, scale: float
) -> KeptAttention:
    """Compare the one decoded token of every request with dense attention in float64.

    Mass and error are means over all rows and query heads.
    ``output`` is [rows, query heads, value channels] and ``pages`` what each row read; the rows of
    a request are its KV heads.
    """
    masses: list[float] = []
    errors: list[float] = []
    found = planted = row = 0
    for data in requests:
        num_tokens, num_heads = data.keys.shape[:2]
        for head in range(num_heads):
            dense = _dense_row(data, head, num_tokens, page_size, scale)
            masses += dense.page_mass[:, pages[row]].sum(axis=-1).tolist()
            difference = np.linalg.norm(output[row] - dense.output, axis=-1)
            errors += (difference / np.linalg.norm(dense.output, axis=-1)).tolist()
            mine = [n.position // page_size for n in data.needles if (n.step, n.head) == (0, head)]
            planted += len(mine)
            found += int(np.isin(mine, pages[row]).sum())
            row += 1
    mass = min(1.0, float(np.mean(masses)))  # sums of shares may end a last bit above 1
    return KeptAttention(mass, float(np.mean(errors)), NeedleFigures(planted=planted, found=found))


def _dense_row(
    data: RequestData, head: int, num_tokens: int, page_size: int, scale: float
) -> _DenseRow:
    query = data.queries[-1, head].astype(np.float64)
    keys = data.keys[:, head].astype(np.float64)
    values = keys if data.values is None else data.values[:, head].astype(np.float64)
    logits = query @ keys.T * scale
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probability = weights / weights.sum(axis=-1, keepdims=True)
    starts = np.arange(0, num_tokens, page_size)
    return _DenseRow(probability @ values, np.add.reduceat(probability, starts, axis=-1))
