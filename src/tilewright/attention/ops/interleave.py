"""Reductions over groups of neighbours."""

from dataclasses import dataclass
from typing import ClassVar

from tilewright.attention.graph import DType, Op, Scope, Side, Types, ValueType
from tilewright.attention.ops.example import Example, page
from tilewright.attention.ops.rule import check_dim, check_whole, lifted, need_number


@dataclass(frozen=True, slots=True)
class InterleavedReduction(Op):
    """``out[m] = reduction over j < k of x[m*k + j]`` along ``dim`` (1 or 2), whose size k divides.

    Tokens that are not there are left out; a group without any gives 0.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    dim: int = 1
    k: int = 2

    def __post_init__(self) -> None:
        check_dim(self, self.dim, 1, 2)
        check_whole(self, "k", self.k, least=1)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_number(self, "x", x)
        size = x.shape[self.dim - 1]
        if size % self.k:
            expected = f"axis {self.dim} in whole groups of k={self.k}"
            raise self.refuse("x", x, expected, "change k or the page size")
        sizes = list(x.shape)
        sizes[self.dim - 1] = size // self.k
        tokens = tuple(axis for axis in x.token_axes if axis != self.dim or self.k == 1)
        return lifted(x, DType.FLOAT32).with_shape(*sizes, token_axes=tokens)


@dataclass(frozen=True, slots=True)
class SumInterleave(InterleavedReduction):
    """Sum of each group of ``k`` neighbours."""


@dataclass(frozen=True, slots=True)
class MeanInterleave(InterleavedReduction):
    """Mean of each group of ``k`` neighbours."""


@dataclass(frozen=True, slots=True)
class MaxInterleave(InterleavedReduction):
    """Largest of each group of ``k`` neighbours."""


@dataclass(frozen=True, slots=True)
class MinInterleave(InterleavedReduction):
    """Smallest of each group of ``k`` neighbours."""


@dataclass(frozen=True, slots=True)
class L2NormInterleave(InterleavedReduction):
    """Square root of the sum of squares of each group of ``k`` neighbours."""


EXAMPLES = tuple(
    Example(op(1, 4), (page(16, 64),), Side.CACHE)
    for op in (SumInterleave, MeanInterleave, MaxInterleave, MinInterleave, L2NormInterleave)
)
