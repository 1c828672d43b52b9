"""Methods of a value under torch's names, with torch's argument names.

Values have rank 3 and keep it: a reduction leaves an axis of size 1, as ``keepdim=True`` says.
"""

from typing import Any, Generic, TypeVar

from tilewright.attention.abs.author import make_op
from tilewright.attention.abs.foreign import NotNumbers
from tilewright.attention.graph import FORMAT, DType, Op, Span
from tilewright.attention.ops import binary, choose, layout, linear, page_axis, reduce, unary
from tilewright.attention.utils import resolve_dtype

V = TypeVar("V")  # the type of values, which derives from this class


class TensorMethods(NotNumbers, Generic[V]):
    """Reductions, layout, conversions and functions of each element."""

    shape: tuple[int, ...]
    dtype: DType
    _format: FORMAT

    def _apply(self, op: Op, *operands: Any) -> V:
        raise NotImplementedError

    # -- reductions, over dim 0 (pages), 1 (rows) or 2 (columns)

    def sum(self, dim: Any = None, keepdim: Any = True, *, dtype: Any = None, **more: Any) -> V:
        return self._reduce(reduce.Sum, dim, keepdim, dtype, **more)

    def mean(self, dim: Any = None, keepdim: Any = True, *, dtype: Any = None, **more: Any) -> V:
        return self._reduce(reduce.Mean, dim, keepdim, dtype, **more)

    def amax(self, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        return self._reduce(reduce.Max, dim, keepdim, **more)

    def amin(self, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        return self._reduce(reduce.Min, dim, keepdim, **more)

    def max(self, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        """Return the maximum over ``dim``, or element by element with another value."""
        if isinstance(dim, TensorMethods):
            return self.maximum(dim)
        return self._reduce(reduce.Max, dim, keepdim, **more)

    def min(self, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        """Return the minimum over ``dim``, or element by element with another value."""
        if isinstance(dim, TensorMethods):
            return self.minimum(dim)
        return self._reduce(reduce.Min, dim, keepdim, **more)

    def l2norm(self, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        return self._reduce(reduce.L2Norm, dim, keepdim, **more)

    def norm(self, p: Any = 2, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        if p not in (2, 2.0, "fro"):
            self._refuse(f"norm with p={p!r}", "p=2, or abs() and a reduction")
        return self._reduce(reduce.L2Norm, dim, keepdim, **more)

    def argmax(self, dim: Any = None, keepdim: Any = True, **more: Any) -> V:
        return self._reduce(reduce.ArgMax, dim, keepdim, **more)

    def argtop(self, k: int, dim: int = 2) -> V:
        return self._apply(make_op(reduce.ArgTop, k, self._axis(dim)), self._value)

    def softmax(
        self, dim: int = 0, scale: float = 1.0, span: str = Span.MIDDLE, dtype: Any = None
    ) -> V:
        """Return the softmax as a new value; unlike the op object it never replaces its operand."""
        self._check_float32("softmax", dtype)
        return self._apply(make_op(page_axis.Softmax, self._axis(dim), scale, span), self._value)

    def cumsum(self, dim: int = 0, reverse: bool = False, span: str = Span.MIDDLE) -> V:
        return self._apply(make_op(page_axis.CumSum, self._axis(dim), reverse, span), self._value)

    # -- layout

    @property
    def T(self) -> V:  # noqa: N802  # as NumPy and torch spell it
        return self._apply(layout.Transpose(), self._value)

    @property
    def mT(self) -> V:  # noqa: N802  # as torch spells it
        return self.T

    def transpose(self, dim0: int, dim1: int) -> V:
        axes = (self._axis(dim0), self._axis(dim1))
        if axes[0] == axes[1]:
            return self._value
        if set(axes) != {1, 2}:
            self._refuse(f"transpose({dim0}, {dim1})", "rows and columns, transpose(1, 2)")
        return self.T

    swapaxes = swapdims = transpose

    def permute(self, *dims: Any) -> V:
        order = tuple(self._axis(dim) for dim in _flat(dims))
        if order == (0, 1, 2):
            return self._value
        if order != (0, 2, 1):
            self._refuse(f"permute{order}", "the page axis first: permute(0, 2, 1)")
        return self.T

    def reshape(self, *shape: Any) -> V:
        """Return the same entries with other inner sizes: (rows, columns), or with -1 in front."""
        rows, columns = self._inner_sizes(_flat(shape))
        paged = self._format in (FORMAT.PAGED, FORMAT.SLOTTED)
        lifted = self.cast(self.dtype.computed) if paged else self._value
        return self._apply(make_op(layout.Reshape, rows, columns), lifted)

    view = reshape

    def contiguous(self) -> V:
        return self._value

    detach = contiguous

    def clone(self) -> V:
        """Return a copy: what replaces this value later leaves the copy alone."""
        return self.cast(self.dtype.computed)

    # -- functions of each element

    def add(self, other: Any, *, alpha: Any = 1.0) -> V:
        return self._apply(make_op(binary.Add, 1.0, alpha), self._value, other)

    def sub(self, other: Any, *, alpha: Any = 1.0) -> V:
        return self._apply(make_op(binary.Add, 1.0, -alpha), self._value, other)

    def mul(self, other: Any) -> V:
        return self._apply(binary.Multiply(), self._value, other)

    def div(self, other: Any) -> V:
        return self._apply(binary.Divide(), self._value, other)

    def pow(self, exponent: Any) -> V:
        return self._apply(binary.Pow(), self._value, exponent)

    def matmul(self, other: Any) -> V:
        turned = self._apply(layout.Transpose(), other)
        return self._apply(linear.GeMM(), turned, self._value)

    bmm = matmul

    def abs(self) -> V:
        return self._apply(unary.Abs(), self._value)

    def neg(self) -> V:
        return self.mul(-1)

    def square(self) -> V:
        return self.mul(self._value)

    def exp(self) -> V:
        return self._apply(unary.Exp(), self._value)

    def log(self) -> V:
        return self._apply(unary.Log(), self._value)

    def sqrt(self) -> V:
        return self._apply(unary.Sqrt(), self._value)

    def rsqrt(self) -> V:
        return self._apply(unary.Rsqrt(), self._value)

    def relu(self) -> V:
        return self._apply(unary.Relu(), self._value)

    def sigmoid(self) -> V:
        """Return the logistic function, unlike the op object's default."""
        return self._apply(make_op(unary.Sigmoid, 0.0, -1.0), self._value)

    def sign(self) -> V:
        return self._apply(unary.Sign(), self._value)

    def floor(self) -> V:
        return self._apply(unary.Floor(), self._value)

    def clamp(self, min: Any = None, max: Any = None, *, low: Any = None, high: Any = None) -> V:
        """Return the value held between ``min`` and ``max``; ``low`` and ``high`` mean the same."""
        if (min is not None and low is not None) or (max is not None and high is not None):
            self._refuse("clamp with two limits of one side", "one name for each limit")
        lower = next((limit for limit in (min, low) if limit is not None), -_INFINITY)
        upper = next((limit for limit in (max, high) if limit is not None), _INFINITY)
        return self._apply(make_op(unary.Clamp, lower, upper), self._value)

    def maximum(self, other: Any) -> V:
        return self._apply(binary.Maximum(), self._value, other)

    def minimum(self, other: Any) -> V:
        return self._apply(binary.Minimum(), self._value, other)

    def where(self, x: Any, y: Any) -> V:
        """Return x where a mask is true, else y; of numbers, ``x.where(mask, y)`` as torch's."""
        if self.dtype is DType.BOOL:
            return self._apply(choose.Select(), self._value, x, y)
        return self._apply(choose.Select(), x, self._value, y)

    def masked_fill(self, mask: Any, value: Any) -> V:
        return self._apply(choose.Select(), mask, value, self._value)

    def gather(self, index: Any, dim: int = 2) -> V:
        return self._apply(make_op(choose.Gather, dim), self._value, index)

    # -- arguments

    @property
    def _value(self) -> V:
        return self  # type: ignore[return-value]  # V alone derives from this class

    def _reduce(
        self,
        kind: type[Op],
        dim: Any,
        keepdim: Any,
        dtype: Any = None,
        *,
        span: str = Span.MIDDLE,
    ) -> V:
        name = kind.__name__
        if keepdim is not True:
            self._refuse(f"{name} with keepdim={keepdim!r}", "keepdim=True: values keep rank 3")
        self._check_float32(name, dtype)
        axes = tuple(self._axis(item, name) for item in _flat((dim,)))
        if len(set(axes)) != len(axes) or (len(axes) > 1 and (0 in axes or kind is reduce.ArgMax)):
            self._refuse(f"{name} over dim {axes}", "one axis, or rows and columns (1, 2)")
        result = self._value
        for axis in axes:
            result = self._apply(make_op(kind, axis, span), result)
        return result

    def _axis(self, dim: Any, name: str = "a method") -> Any:
        if dim is None:
            self._refuse(f"{name} without an axis", "dim=0 (pages), 1 (rows) or 2 (columns)")
        inside = isinstance(dim, _INT) and not isinstance(dim, bool) and -3 <= dim < 0
        return dim + 3 if inside else dim  # what is wrong is refused by the op

    def _check_float32(self, name: str, dtype: Any) -> None:
        if dtype is not None and resolve_dtype(dtype) is not DType.FLOAT32:
            self._refuse(f"{name} with dtype={dtype}", "float32, in which values are computed")

    def _inner_sizes(self, shape: tuple[Any, ...]) -> tuple[int, int]:
        """Return rows and columns of a shape in torch's form, one of which may be -1."""
        if len(shape) not in (2, 3) or any(not isinstance(size, _INT) for size in shape):
            self._refuse(f"the shape {shape}", "(rows, columns) or (-1, rows, columns)")
        inner = list(shape[-2:])
        if len(shape) == 3 and shape[0] not in (-1, self.shape[0], 1):
            self._refuse(f"{shape[0]} as the leading size", "-1 or x.shape[0]: pages stay")
        if -1 in inner and (inner.count(-1) > 1 or shape[0] == -1):
            self._refuse(f"the shape {shape}", "at most one size of -1")
        if -1 in inner:
            total, known = self.shape[1] * self.shape[2], -inner[0] * inner[1]
            if known < 1 or total % known:
                self._refuse(f"the shape {shape} for {total} entries", "sizes that divide them")
            inner[inner.index(-1)] = total // known
        return inner[0], inner[1]

    # -- element types, at the end: their names are those of types

    def cast(self, dtype: object) -> V:
        return self._apply(unary.Cast(resolve_dtype(dtype)), self._value)

    def to(self, dtype: Any) -> V:
        if isinstance(dtype, TensorMethods):
            dtype = dtype.dtype
        elif str(dtype).partition(":")[0] in ("cpu", "cuda", "meta"):
            self._refuse(f"to({dtype!r})", "an element type: a flow has no devices")
        return self.cast(dtype)

    def float(self) -> V:
        return self.cast(DType.FLOAT32)

    def bfloat16(self) -> V:
        return self.cast(DType.BFLOAT16)

    def half(self) -> V:
        return self.cast(DType.FLOAT16)

    def int(self) -> V:
        return self.cast(DType.INT32)


_INFINITY = float("inf")
_INT = int  # the class has a method of this name


def _flat(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return sizes or axes that were given one by one, or as one sequence."""
    one = len(items) == 1 and isinstance(items[0], tuple | list)
    return tuple(items[0]) if one else items
