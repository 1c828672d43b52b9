"""Reductions over rows, columns and pages."""

from dataclasses import dataclass
from typing import ClassVar

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Side, Span, Types, ValueType
from tilewright.attention.ops.example import PER_HEAD, SCORES, Example, page, pages, row
from tilewright.attention.ops.rule import (
    check_dim,
    check_page_axis,
    check_whole,
    lifted,
    need_format,
    need_number,
    need_rank_two,
    settle_choice,
)


@dataclass(frozen=True, slots=True)
class Reduction(Op):
    """Over rows (dim 1: [., r, c] -> [., 1, c]), columns (dim 2: -> [., r, 1]) or pages (dim 0:
    RAGGED [S, r, c] -> BATCHED [1, r, c]).

    Tokens that are not there are left out. ``span`` says which pages dim 0 sees; no entry at all
    gives 0, for every kind of reduction.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    keeps_integers: ClassVar[bool] = True
    takes_bool: ClassVar[bool] = False
    dim: int = 1
    span: Span = Span.MIDDLE

    def __post_init__(self) -> None:
        check_dim(self, self.dim, 0, 1, 2)
        settle_choice(self, "span", Span)

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        (x,) = inputs
        check_page_axis(self, self.dim, scope)
        (need_rank_two if self.takes_bool else need_number)(self, "x", x)
        dtype = x.dtype.computed if self.keeps_integers else DType.FLOAT32
        if self.dim == 0:
            need_format(self, "x", x, FORMAT.RAGGED)
            return scope.per_row(x.shape, dtype)
        sizes = [1 if axis == self.dim else x.shape[axis - 1] for axis in (1, 2)]
        tokens = tuple(axis for axis in x.token_axes if axis != self.dim)
        return lifted(x, dtype).with_shape(*sizes, token_axes=tokens)


@dataclass(frozen=True, slots=True)
class Sum(Reduction):
    """Sum over ``dim``."""


@dataclass(frozen=True, slots=True)
class Mean(Reduction):
    """Mean over ``dim``: the sum divided by the number of entries that are there. float32."""

    keeps_integers: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Max(Reduction):
    """Largest entry over ``dim``; of bools, whether any is true."""

    takes_bool: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Min(Reduction):
    """Smallest entry over ``dim``; of bools, whether all are true."""

    takes_bool: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class L2Norm(Reduction):
    """Square root of the sum of squares over ``dim`` (not of their mean). float32."""

    keeps_integers: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ArgMax(Reduction):
    """Index of the largest entry over ``dim``, the lowest one of equals: int32.

    For dim 0 it is the logical page index. No entry at all gives 0.
    """

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        result = Reduction.infer(self, inputs, scope)
        return ValueType(
            result.format, result.leading, result.shape, DType.INT32, result.token_axes
        )


@dataclass(frozen=True, slots=True)
class ArgTop(Op):
    """Indices of the ``k`` largest entries over ``dim`` (1 or 2), largest first, the lower index
    first among equals: int32, with k entries on that axis. Tokens that are not there come last.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    k: int
    dim: int = 2

    def __post_init__(self) -> None:
        check_dim(self, self.dim, 1, 2)
        check_whole(self, "k", self.k, least=1)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_number(self, "x", x)
        size = x.shape[self.dim - 1]
        if self.k > size:
            raise self.refuse("x", x, f"at least k={self.k} entries on dim {self.dim}", "change k")
        sizes = [self.k if axis == self.dim else x.shape[axis - 1] for axis in (1, 2)]
        return lifted(x, DType.INT32).with_shape(*sizes)


EXAMPLES = (
    Example(Sum(2), (pages(4, 64),)),
    Example(Mean(1), (page(16, 64),), Side.CACHE),
    Example(Mean(0), (SCORES,)),
    Example(Max(2), (PER_HEAD,)),
    Example(Min(1), (page(16, 64),), Side.CACHE),
    Example(L2Norm(2), (page(16, 64),), Side.CACHE),
    Example(ArgMax(0), (SCORES,)),
    Example(ArgTop(8), (row(1, 64),)),
)
