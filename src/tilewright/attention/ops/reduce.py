"""Reductions over rows, columns and pages."""

from dataclasses import replace

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Span, Types, ValueType
from tilewright.attention.ops.rule import (
    lifted,
    need_format,
    need_number,
    need_rank_two,
)


class Reduction(Op):
    """Over rows (dim 1: [., r, c] -> [., 1, c]), columns (dim 2: -> [., r, 1]) or pages (dim 0:
    RAGGED [S, r, c] -> BATCHED [1, r, c]).

    Tokens that are not there are left out. ``span`` says which pages dim 0 sees; no entry at all
    gives 0, for every kind of reduction.
    """

    operands = ("x",)
    keeps_integers = True
    takes_bool = False
    dims = (0, 1, 2)
    dim: int = 1
    span: Span = Span.MIDDLE

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        (x,) = inputs
        (need_rank_two if self.takes_bool else need_number)(self, "x", x)
        dtype = x.dtype.computed if self.keeps_integers else DType.FLOAT32
        if self.dim == 0:
            need_format(self, "x", x, FORMAT.RAGGED)
            return scope.per_row(x.shape, dtype)
        tokens = tuple(axis for axis in x.token_axes if axis != self.dim)
        return lifted(x, dtype).with_shape(*x.sizes_with(self.dim, 1), token_axes=tokens)


class Sum(Reduction):
    """Sum over ``dim``."""


class Mean(Reduction):
    """Mean over ``dim``: the sum divided by the number of entries that are there. float32."""

    keeps_integers = False


class Max(Reduction):
    """Largest entry over ``dim``; of bools, whether any is true."""

    takes_bool = True


class Min(Reduction):
    """Smallest entry over ``dim``; of bools, whether all are true."""

    takes_bool = True


class L2Norm(Reduction):
    """Square root of the sum of squares over ``dim`` (not of their mean). float32."""

    keeps_integers = False


class ArgMax(Reduction):
    """Index of the largest entry over ``dim``, the lowest one of equals: int32.

    For dim 0 it is the logical page index. No entry at all gives 0.
    """

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        return replace(super().infer(inputs, scope), dtype=DType.INT32)


class ArgTop(Op):
    """Indices of the ``k`` largest entries over ``dim`` (1 or 2), largest first, the lower index
    first among equals: int32, with k entries on that axis. Tokens that are not there come last.
    """

    operands = ("x",)
    dims = (1, 2)
    minima = (("k", 1),)
    k: int
    dim: int = 2

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_number(self, "x", x)
        size = x.shape[self.dim - 1]
        if self.k > size:
            raise self.refuse("x", x, f"at least k={self.k} entries on dim {self.dim}", "change k")
        return lifted(x, DType.INT32).with_shape(*x.sizes_with(self.dim, self.k))


class InterleavedReduction(Op):
    """``out[m] = reduction over j < k of x[m*k + j]`` along ``dim`` (1 or 2), whose size k divides.

    Tokens that are not there are left out; a group without any gives 0.
    """

    operands = ("x",)
    dims = (1, 2)
    minima = (("k", 1),)
    dim: int = 1
    k: int = 2

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_number(self, "x", x)
        size = x.shape[self.dim - 1]
        if size % self.k:
            expected = f"axis {self.dim} in whole groups of k={self.k}"
            raise self.refuse("x", x, expected, "change k or the page size")
        tokens = tuple(axis for axis in x.token_axes if axis != self.dim or self.k == 1)
        sizes = x.sizes_with(self.dim, size // self.k)
        return lifted(x, DType.FLOAT32).with_shape(*sizes, token_axes=tokens)


class SumInterleave(InterleavedReduction):
    """Sum of each group of ``k`` neighbours."""


class MeanInterleave(InterleavedReduction):
    """Mean of each group of ``k`` neighbours."""


class MaxInterleave(InterleavedReduction):
    """Largest of each group of ``k`` neighbours."""


class MinInterleave(InterleavedReduction):
    """Smallest of each group of ``k`` neighbours."""


class L2NormInterleave(InterleavedReduction):
    """Square root of the sum of squares of each group of ``k`` neighbours."""


OPS = (Sum, Mean, Max, Min, L2Norm, ArgMax, ArgTop)
OPS_OF_NEIGHBOURS = (
    SumInterleave,
    MeanInterleave,
    MaxInterleave,
    MinInterleave,
    L2NormInterleave,
)
