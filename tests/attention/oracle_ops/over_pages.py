"""Ops along an axis, mostly that of pages; pages outside the span pass through."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tests.attention.oracle_ops.reduce import KINDS
from tests.attention.oracle_ops.row import AnyArray, Array, Operand, OracleRow, wrapped

Index = tuple[int, ...]


def lines(row: OracleRow, shape: Index, dim: int, span: str) -> Iterator[list[Index]]:
    """The elements that one application of an op along ``dim`` sees together, in order."""
    positions = row.span(span) if dim == 0 else range(shape[dim])
    others = [size for axis, size in enumerate(shape) if axis != dim]
    for other in np.ndindex(*others):
        yield [(*other[:dim], position, *other[dim:]) for position in positions]


def softmax(
    row: OracleRow, x: Operand, *, dim: int = 0, scale: float = 1.0, span: str = "middle"
) -> Array:
    """Equal elements, masked or not, get equal shares; tokens that are not there get 0."""
    out = x.values.astype(np.float64)
    for line in lines(row, x.values.shape, dim, span):
        there = [index for index in line if x.there[index]]
        for index in line:
            out[index] = 0.0
        top = max((scale * float(x.values[index]) for index in there), default=-math.inf)
        if top == -math.inf:
            continue
        weights = [math.exp(scale * float(x.values[index]) - top) for index in there]
        for index, weight in zip(there, weights, strict=True):
            out[index] = weight / math.fsum(weights)
    return out


def normalize(row: OracleRow, x: Operand, *, span: str = "middle") -> Array:
    """Divided by the L2 norm over the pages of the span, which counts as 1e-12 at least."""
    out = x.values.copy()
    for line in lines(row, x.values.shape, 0, span):
        squares = [float(x.values[index]) ** 2 for index in line if x.there[index]]
        for index in line:
            out[index] = float(x.values[index]) / max(math.sqrt(math.fsum(squares)), 1e-12)
    return out


def conv1d(
    row: OracleRow,
    x: Array,
    *,
    weight: Sequence[Sequence[Sequence[float]]],
    span: str = "middle",
) -> Array:
    """Causal: ``out[p] = sum_k weight[k] x[p - k]``, and zeros before the span begins."""
    taps = np.array(weight, dtype=np.float64)
    out = x.copy()
    pages = row.span(span)
    for page in pages:
        for i, j in np.ndindex(*x.shape[1:]):
            total = 0.0
            for k in range(taps.shape[0]):
                if page - k in pages:
                    total += float(taps[k, i, j]) * float(x[page - k, i, j])
            out[page, i, j] = total
    return out


def cum_sum(
    row: OracleRow, x: Operand, *, dim: int = 0, reverse: bool = False, span: str = "middle"
) -> AnyArray:
    """Up to and including each element; with ``reverse`` from it to the end."""
    out = x.values.copy()
    for line in lines(row, x.values.shape, dim, span):
        for place, index in enumerate(line):
            part = line[place:] if reverse else line[: place + 1]
            terms = [x.values[other].item() for other in part if x.there[other]]
            whole = x.values.dtype.kind == "i"
            out[index] = wrapped(sum(terms)) if whole else math.fsum(terms)
    return out


def pool_pages(
    row: OracleRow,
    x: Operand,
    *,
    kind: str,
    before: int = 0,
    after: int = 0,
    span: str = "middle",
) -> Array:
    """Over the pages ``p - before .. p + after`` of the span."""
    out = x.values.astype(np.float64)
    for line in lines(row, x.values.shape, 0, span):
        for place, index in enumerate(line):
            near = line[max(place - before, 0) : place + after + 1]
            terms = [float(x.values[other]) for other in near if x.there[other]]
            out[index] = KINDS[kind.capitalize()](terms) if terms else 0.0
    return out


def shift_pages(row: OracleRow, x: AnyArray, *, offset: int, fill: float = 0.0) -> AnyArray:
    """``out[p] = x[p + offset]``, and ``fill`` beyond the ends of the row."""
    out = np.full(x.shape, fill, dtype=x.dtype)
    for page in range(row.num_pages):
        if 0 <= page + offset < row.num_pages:
            out[page] = x[page + offset]
    return out


def across_heads(*heads: AnyArray, kind: str = "sum") -> Array:
    """One array for each KV head of the request; the result is that of every head."""
    out = np.empty(heads[0].shape)
    for index in np.ndindex(*out.shape):
        out[index] = KINDS[kind.capitalize()]([float(head[index]) for head in heads])
    return out
