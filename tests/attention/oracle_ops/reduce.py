"""Reductions over rows, columns, pages, and over groups of neighbours."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.attention.oracle_ops.row import AnyArray, Operand, OracleRow, wrapped

Kind = Callable[[Sequence[Any]], Any]


def sum_of(values: Sequence[Any]) -> Any:
    if all(isinstance(value, int) for value in values):
        return wrapped(sum(values))
    return math.fsum(values)


def mean_of(values: Sequence[Any]) -> float:
    return math.fsum(values) / len(values)


def l2_norm_of(values: Sequence[Any]) -> float:
    return math.sqrt(math.fsum(value * value for value in values))


def first_largest(values: Sequence[Any]) -> int:
    return list(values).index(max(values))


KINDS: dict[str, Kind] = {
    "Sum": sum_of,
    "Mean": mean_of,
    "Max": max,
    "Min": min,
    "L2Norm": l2_norm_of,
}
FLOATS = ("Mean", "L2Norm")  # never whole numbers


def result_dtype(name: str, x: AnyArray) -> Any:
    return np.float64 if name in FLOATS else x.dtype


def along(x: Operand, axis: int, others: tuple[int, ...], positions: Sequence[int]) -> list[Any]:
    """The elements at ``positions`` of ``axis`` that are there, as Python numbers."""
    found = []
    for position in positions:
        index = (*others[:axis], position, *others[axis:])
        if x.there[index]:
            found.append(x.values[index].item())
    return found


def reduction(name: str) -> Callable[..., AnyArray]:
    """The reduced axis stays with size 1; no element at all gives 0."""

    def reduce(row: OracleRow, x: Operand, *, dim: int = 1, span: str = "middle") -> AnyArray:
        kept = [size for axis, size in enumerate(x.values.shape) if axis != dim]
        positions = row.span(span) if dim == 0 else range(x.values.shape[dim])
        out = np.zeros(kept, dtype=result_dtype(name, x.values))
        for others in np.ndindex(*kept):
            found = along(x, dim, others, positions)
            if found:
                out[others] = KINDS[name](found)
        return np.expand_dims(out, dim)

    return reduce


def interleaved(name: str) -> Callable[..., AnyArray]:
    """``out[m] = reduction of x[m * k + j]`` over ``j < k``; float, also of whole numbers."""

    def reduce(_: OracleRow, x: Operand, *, dim: int = 1, k: int = 2) -> AnyArray:
        kept = [size for axis, size in enumerate(x.values.shape) if axis != dim]
        groups = [range(m * k, m * k + k) for m in range(x.values.shape[dim] // k)]
        out = np.zeros((len(groups), *kept))
        for m, group in enumerate(groups):
            for others in np.ndindex(*kept):
                found = along(x, dim, others, group)
                if found:
                    out[(m, *others)] = KINDS[name](found)
        return np.moveaxis(out, 0, dim)

    return reduce


def arg_max(row: OracleRow, x: Operand, *, dim: int = 1, span: str = "middle") -> AnyArray:
    """The lowest of the positions with the largest element; 0 where there is none."""
    kept = [size for axis, size in enumerate(x.values.shape) if axis != dim]
    positions = row.span(span) if dim == 0 else range(x.values.shape[dim])
    out = np.zeros(kept, dtype=np.int64)
    for others in np.ndindex(*kept):
        there = [p for p in positions if along(x, dim, others, [p])]
        if there:
            out[others] = there[first_largest(along(x, dim, others, there))]
    return np.expand_dims(out, dim)


def arg_top(x: AnyArray, *, k: int, dim: int = 2) -> AnyArray:
    """Positions of the ``k`` largest, the largest first and the lower one of equals first."""
    lines = np.moveaxis(x, dim, 2)
    out = np.empty((*lines.shape[:2], k), dtype=np.int64)
    for s, i in np.ndindex(*lines.shape[:2]):
        order = sorted((-lines[s, i, j].item(), j) for j in range(lines.shape[2]))
        out[s, i] = [j for _, j in order[:k]]
    return np.moveaxis(out, 2, dim)
