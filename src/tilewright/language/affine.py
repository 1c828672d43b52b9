"""Index arithmetic that stays arithmetic: value(i, j, ...) = base + stride_0 i + stride_1 j + ...

Every function here either gives the exact result in this form or None: then the index has to become
a value that is computed.
"""

from typing import Any, NamedTuple

import numpy as np

from tilewright.errors import KernelTypeError

Shape = tuple[int, ...]

MAX_AXES = 16  # shared with csrc


class Affine:
    """Integers over the places of a block. It never changes."""

    __slots__ = ("_high", "_low", "base", "shape", "strides")

    def __init__(self, base: int, strides: Shape, shape: Shape) -> None:
        if len(shape) > MAX_AXES:
            found, fix = f"the {len(shape)} axes of an index", "reshape the block instead"
            raise KernelTypeError("index", found, f"at most {MAX_AXES}", fix)
        self.base = base
        self.strides = strides
        self.shape = shape
        self._low: int | None = None
        self._high = 0

    def __repr__(self) -> str:
        return f"Affine({self.base}, {self.strides}, {self.shape})"

    @property
    def low(self) -> int:
        """The least value, which is taken."""
        if self._low is None:
            self._find_range()
        return self._low  # type: ignore[return-value]  # found

    @property
    def high(self) -> int:
        """The greatest value, which is taken."""
        if self._low is None:
            self._find_range()
        return self._high

    def _find_range(self) -> None:
        low = high = self.base
        for stride, extent in zip(self.strides, self.shape, strict=True):
            reach = stride * (extent - 1)
            if reach < 0:
                low += reach
            else:
                high += reach
        self._low, self._high = low, high

    def array(self, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """All values; they wrap as the dtype does."""
        if len(self.shape) == 1:  # mostly
            steps = np.arange(self.shape[0], dtype=np.int64) * self.strides[0]
            return (steps + self.base).astype(dtype, copy=False)
        total = np.full(self.shape, self.base, np.int64)
        for axis, (stride, extent) in enumerate(zip(self.strides, self.shape, strict=True)):
            places = [1] * len(self.shape)
            places[axis] = extent
            total += (np.arange(extent, dtype=np.int64) * stride).reshape(places)
        return total.astype(dtype)

    # -- shape -----------------------------------------------------------------------------------

    def expanded(self, axis: int) -> "Affine":
        """With an axis of extent 1 before ``axis``."""
        return Affine(
            self.base,
            (*self.strides[:axis], 0, *self.strides[axis:]),
            (*self.shape[:axis], 1, *self.shape[axis:]),
        )

    def broadcast(self, shape: Shape) -> "Affine":
        """Over a shape that ``broadcast_shapes`` gave."""
        if shape == self.shape:
            return self
        missing = len(shape) - len(self.shape)
        strides = [0] * missing
        for stride, extent in zip(self.strides, self.shape, strict=True):
            strides.append(0 if extent == 1 else stride)
        return Affine(self.base, tuple(strides), shape)

    def permuted(self, order: Shape) -> "Affine":
        strides = tuple(self.strides[axis] for axis in order)
        return Affine(self.base, strides, tuple(self.shape[axis] for axis in order))

    # -- arithmetic ------------------------------------------------------------------------------

    def plus(self, other: "Affine") -> "Affine":
        if not self.shape:
            return Affine(self.base + other.base, other.strides, other.shape)
        shape = broadcast_shapes(self.shape, other.shape)
        left, right = self.broadcast(shape), other.broadcast(shape)
        strides = tuple([one + two for one, two in zip(left.strides, right.strides, strict=True)])
        return Affine(self.base + other.base, strides, shape)

    def shifted(self, amount: int) -> "Affine":
        return Affine(self.base + amount, self.strides, self.shape)

    def scaled(self, factor: int) -> "Affine":
        strides = tuple([stride * factor for stride in self.strides])
        return Affine(self.base * factor, strides, self.shape)

    def constant(self, value: int) -> "Affine":
        return Affine(value, (0,) * len(self.shape), self.shape)

    def divided(self, divisor: int) -> "Affine | None":
        """The whole quotient of values that are not negative."""
        if divisor <= 0 or self.low < 0:
            return None
        if self.low // divisor == self.high // divisor:
            return self.constant(self.low // divisor)
        if self.base % divisor or any(stride % divisor for stride in self.strides):
            return None
        strides = tuple(stride // divisor for stride in self.strides)
        return Affine(self.base // divisor, strides, self.shape)

    def remainder(self, divisor: int) -> "Affine | None":
        """Of values that are not negative and do not wrap."""
        if divisor <= 0 or self.low < 0:
            return None
        if self.low // divisor == self.high // divisor:
            return self.shifted(-divisor * (self.low // divisor))
        if any(stride % divisor for stride in self.strides):
            return None
        return self.constant(self.base % divisor)

    def at_most(self, bound: int) -> "Affine | None":
        """minimum(value, bound), where one of the two is always the smaller."""
        if self.high <= bound:
            return self
        return self.constant(bound) if self.low >= bound else None

    def at_least(self, bound: int) -> "Affine | None":
        """maximum(value, bound), likewise."""
        if self.low >= bound:
            return self
        return self.constant(bound) if self.high <= bound else None

    def below(self, bound: int) -> "Box | None":
        """Where value < bound: a box, if at most one axis decides."""
        if self.high < bound:
            return Box.whole(self.shape)
        if self.low >= bound:
            return Box.empty(self.shape) if self.shape else None
        steps = enumerate(zip(self.strides, self.shape, strict=True))
        axes = [axis for axis, (stride, extent) in steps if stride and extent > 1]
        if len(axes) != 1:
            return None
        axis = axes[0]
        stride, extent = self.strides[axis], self.shape[axis]
        if stride > 0:
            return Box.slab(self.shape, axis, 0, -((self.base - bound) // stride))
        return Box.slab(self.shape, axis, (self.base - bound) // -stride + 1, extent)


class Box(NamedTuple):
    """Where a mask is true: low_d <= i_d < high_d on every axis. Without axes it is true."""

    low: Shape
    high: Shape
    shape: Shape

    @classmethod
    def whole(cls, shape: Shape) -> "Box":
        return cls((0,) * len(shape), shape, shape)

    @classmethod
    def empty(cls, shape: Shape) -> "Box":
        return cls((0,) * len(shape), (0,) * len(shape), shape)

    @classmethod
    def slab(cls, shape: Shape, axis: int, low: int, high: int) -> "Box":
        """All of it, but on one axis from low to high."""
        lows, highs = [0] * len(shape), list(shape)
        lows[axis], highs[axis] = max(0, low), min(shape[axis], high)
        return cls(tuple(lows), tuple(highs), shape)

    @property
    def is_whole(self) -> bool:
        return self.high == self.shape and not any(self.low)

    @property
    def is_empty(self) -> bool:
        return any(low >= high for low, high in zip(self.low, self.high, strict=True))

    @property
    def slices(self) -> tuple[slice, ...]:
        """The places inside, as a subscript of an array."""
        return tuple(map(slice, self.low, self.high))

    def array(self) -> np.ndarray[Any, Any]:
        mask = np.zeros(self.shape, np.bool_)
        mask[self.slices] = True
        return mask

    def broadcast(self, shape: Shape) -> "Box":
        if shape == self.shape:
            return self
        missing = len(shape) - len(self.shape)
        low, high = [0] * missing, list(shape[:missing])
        for axis, extent in enumerate(self.shape):
            if extent == shape[missing + axis]:
                low.append(self.low[axis])
                high.append(self.high[axis])
            else:  # one place for all: true or false on the whole axis
                low.append(0)
                high.append(shape[missing + axis] if self.high[axis] > self.low[axis] else 0)
        return Box(tuple(low), tuple(high), shape)

    def expanded(self, axis: int) -> "Box":
        if len(self.shape) == MAX_AXES:
            found, fix = f"{MAX_AXES + 1} axes of a mask", "reshape the block instead"
            raise KernelTypeError("mask", found, f"at most {MAX_AXES}", fix)
        return Box(
            (*self.low[:axis], 0, *self.low[axis:]),
            (*self.high[:axis], 1, *self.high[axis:]),
            (*self.shape[:axis], 1, *self.shape[axis:]),
        )

    def both(self, other: "Box") -> "Box":
        """Where this and the other mask are true."""
        shape = broadcast_shapes(self.shape, other.shape)
        left, right = self.broadcast(shape), other.broadcast(shape)
        low = tuple(map(max, left.low, right.low))
        return Box(low, tuple(map(min, left.high, right.high)), shape)

    def either(self, other: "Box") -> "Box | None":
        """Where one of them is true, if that is one of them."""
        shape = broadcast_shapes(self.shape, other.shape)
        left, right = self.broadcast(shape), other.broadcast(shape)
        for inner, outer in ((left, right), (right, left)):
            if inner.is_empty or inner.both(outer) == inner:
                return outer
        return None

    def inverted(self) -> "Box | None":
        """Where it is false, if that is a box."""
        if self.is_empty:
            return Box.whole(self.shape)
        low, high, shape = self.low, self.high, self.shape
        cut = [axis for axis in range(len(shape)) if low[axis] > 0 or high[axis] < shape[axis]]
        if not cut:
            return Box.empty(self.shape) if self.shape else None
        axis = cut[0]
        if len(cut) > 1 or (self.low[axis] > 0 and self.high[axis] < self.shape[axis]):
            return None
        if self.low[axis] > 0:
            return Box.slab(self.shape, axis, 0, self.low[axis])
        return Box.slab(self.shape, axis, self.high[axis], self.shape[axis])


def broadcast_shapes(left: Shape, right: Shape) -> Shape:
    """The shape that both can be seen as.

    >>> broadcast_shapes((64, 1), (1, 32)), broadcast_shapes((), (8,))
    ((64, 32), (8,))
    """
    if left == right:
        return left
    if not left or not right:
        return left or right
    rank = max(len(left), len(right))
    wide_left, wide_right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    extents = []
    for one, other in zip(wide_left, wide_right, strict=True):
        if one != other and one != 1 and other != 1:
            fix = "make the extents equal, or 1"
            raise KernelTypeError("broadcast", f"{left} and {right}", "shapes that fit", fix)
        extents.append(max(one, other))
    return tuple(extents)
