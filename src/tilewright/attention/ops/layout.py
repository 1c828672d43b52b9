"""Moving, cutting and rotating entries inside a page or row."""

from dataclasses import replace

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Types, ValueType
from tilewright.attention.ops.rule import (
    broadcast,
    lifted,
    need_float,
    need_format,
    need_number,
    need_rank_two,
)


class Transpose(Op):
    """[., r, c] -> [., c, r]."""

    operands = ("x",)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_rank_two(self, "x", x)
        tokens = tuple(sorted(3 - axis for axis in x.token_axes))
        return lifted(x).with_shape(x.shape[1], x.shape[0], token_axes=tokens)


class Reshape(Op):
    """[., r, c] -> [., rows, columns] in row-major order; r * c == rows * columns.

    RAGGED or BATCHED. A new shape forgets which axis runs over tokens, so tokens that are not
    there count as the values computed from 0.
    """

    operands = ("x",)
    minima = (("rows", 1), ("columns", 1))
    rows: int
    columns: int

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_rank_two(self, "x", x)
        need_format(self, "x", x, FORMAT.RAGGED, FORMAT.BATCHED)
        sizes = (self.rows, self.columns)
        if self.rows * self.columns != x.num_elements:
            expected = f"{self.rows} x {self.columns} = {self.rows * self.columns} elements"
            raise self.refuse("x", x, expected, "change the sizes; their product must stay")
        return lifted(x).with_shape(*sizes, token_axes=x.token_axes if sizes == x.shape else ())


class _Part(Op):
    """An op on the entries ``start <= i < end`` of an inner axis."""

    operands = ("x",)
    dims = (1, 2)
    minima = (("start", 0),)
    start: int
    end: int
    dim: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("end", self.start)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_rank_two(self, "x", x)
        size = x.shape[self.dim - 1]
        if self.end > size:
            expected = f"at least end={self.end} entries on axis {self.dim}"
            raise self.refuse("x", x, expected, f"end is at most {size} here")
        return lifted(x)


class MaskSlice(_Part):
    """``alpha`` where ``start <= i < end`` on ``dim`` (1 or 2), ``beta`` elsewhere, in the shape of
    x; the values of x do not matter. float32.
    """

    alpha: float = 1.0
    beta: float = 0.0

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        return replace(super().infer(inputs, scope), dtype=DType.FLOAT32)


class Slice(_Part):
    """Entries ``start <= i < end`` on ``dim`` (1 or 2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start == self.end:
            raise self.refuse("", f"start={self.start}, end={self.end}", "an entry", "widen it")

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        result, (x,) = super().infer(inputs, scope), inputs
        num_entries = self.end - self.start
        whole = num_entries == x.shape[self.dim - 1]
        tokens = tuple(axis for axis in x.token_axes if axis != self.dim or whole)
        return result.with_shape(*x.sizes_with(self.dim, num_entries), token_axes=tokens)


class Concat(Op):
    """The operands one after the other along ``dim`` (1 or 2); the other axis is equal or 1."""

    operands = ("x", "y...")
    dims = (1, 2)
    dim: int = 2

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        for index, value in enumerate(inputs):
            need_rank_two(self, f"{index}", value)
            if value.dtype.computed is not inputs[0].dtype.computed:
                expected = f"elements like those of the first, {inputs[0]}"
                raise self.refuse(f"{index}", value, expected, "Cast one of them")
        kept = tuple(value.with_shape(*value.sizes_with(self.dim, 1)) for value in inputs)
        names = tuple(map(str, range(len(inputs))))
        result = broadcast(self, kept, inputs[0].dtype.computed, names=names)
        size = sum(value.shape[self.dim - 1] for value in inputs)
        return result.with_shape(*result.sizes_with(self.dim, size))


class Rope(Op):
    """Rotates the columns of x: pair i by the angle ``position * base**(-2 i / c)``.

    x [., r, c] with an even c; position [., r or 1, 1]. Pairs are (i, i + c/2), or (2i, 2i + 1)
    with ``interleaved``. A negative position undoes a rotation.
    """

    operands = ("x", "position")
    base: float = 10000.0
    interleaved: bool = False

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        x, position = inputs
        need_float(self, "x", x)
        need_number(self, "position", position)
        if x.shape[1] % 2:
            raise self.refuse("x", x, "an even number of columns", "rotate a slice of them")
        if position.shape[1] != 1 or position.shape[0] not in (1, x.shape[0]):
            expected = f"inner shape ({x.shape[0]} or 1, 1)"
            raise self.refuse("position", position, expected, "one position for each row")
        return broadcast(self, inputs, DType.FLOAT32)


OPS = (Transpose, Reshape, MaskSlice, Slice, Concat, Rope)
