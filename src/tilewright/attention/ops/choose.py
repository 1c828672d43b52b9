"""Choosing between values, and picking entries by index."""

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Types, ValueType
from tilewright.attention.ops.rule import (
    broadcast,
    lifted,
    need_integers,
    need_rank_two,
    number_type,
)


class Select(Op):
    """x where the mask is true, else y. The other operand's value, even NaN, has no influence."""

    operands = ("mask", "x", "y")

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        mask, x, y = inputs
        if mask.dtype is not DType.BOOL:
            raise self.refuse("mask", mask, "bools", "compare first, as in x > y")
        for operand, value in (("x", x), ("y", y)):
            need_rank_two(self, operand, value)
        bools = {x.dtype is DType.BOOL, y.dtype is DType.BOOL}
        if len(bools) == 2:
            raise self.refuse("y", y, f"the kind of element that x {x} has", "Cast one of them")
        return broadcast(self, inputs, DType.BOOL if True in bools else number_type((x, y)))


class Gather(Op):
    """Entries of x at whole-number positions. A position outside gives 0.

    dim 1: index [., n, 1] picks rows, ``out[s, i, c] = x[s, index[s, i, 0], c]``. dim 2: index
    [., 1, n] picks columns, ``out[s, r, j] = x[s, r, index[s, 0, j]]``. dim 0: index [., 1, 1]
    picks pages of the row by logical position, ``out[s] = x[index[s]]``, one entry for each of
    index.
    """

    operands = ("x", "index")
    dims = (0, 1, 2)
    dim: int = 2

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        x, index = inputs
        need_rank_two(self, "x", x)
        need_integers(self, "index", index)
        other = {0: (1, 1), 1: (index.shape[0], 1), 2: (1, index.shape[1])}[self.dim]
        if index.shape != other:
            raise self.refuse("index", index, f"inner shape {other} for dim={self.dim}", "reshape")
        if self.dim == 0:
            if x.format not in (FORMAT.RAGGED, FORMAT.PAGED):
                raise self.refuse("x", x, "a value per page", "gather rows or columns of it")
            return lifted(index, x.dtype.computed).with_shape(*x.shape)
        sizes = x.sizes_with(self.dim, index.shape[self.dim - 1])
        tokens = tuple(axis for axis in x.token_axes if axis != self.dim)
        both = (x.with_shape(1, 1), index.with_shape(1, 1))
        return broadcast(self, both, x.dtype.computed).with_shape(*sizes, token_axes=tokens)


OPS = (Select, Gather)
