"""Handles that ``tl`` gives to a kernel: of tensors, of composites and of messages to come."""

import operator
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from tilewright.errors import KernelTypeError, ProgramError
from tilewright.interop.kernbench.value import DTYPES
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.executor import Handle, current_program
from tilewright.language.library.libdevice import div_rn
from tilewright.language.pointer import Ref
from tilewright.language.value import Value


class _MadeByLanguage:
    """An object that only the language makes."""

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  # of any class there
        name = type(self).__name__
        found = f"a {name} made by hand"
        fix = "call tl.load, tl.ref, tl.composite or tl.recv_async in a kernel that is launched"
        raise ProgramError(name, found, "what tl gives", fix)

    @classmethod
    def _made(cls, **parts: Any) -> Self:
        """Return an object with these attributes."""
        made = cls.__new__(cls)
        for name, part in parts.items():
            setattr(made, name, part)
        return made


def _quotient(left: Any, right: Any) -> Any:
    """Divide; floats keep their dtype, integers give f32."""
    if _is_float(left) or _is_float(right):
        return div_rn(left, right)
    return left / right


def _is_float(value: Any) -> bool:
    if isinstance(value, Value):
        return bool(value.dtype.is_floating())
    return isinstance(value, float)


def _operator(
    function: Callable[[Any, Any], Any], *, is_reflected: bool = False
) -> Callable[["TensorHandle", Any], "TensorHandle"]:
    """Return a method that applies a function to two operands."""

    def apply(self: "TensorHandle", other: Any) -> "TensorHandle":
        return handle_of(function(operand_of(self), operand_of(other)))

    def apply_reflected(self: "TensorHandle", other: Any) -> "TensorHandle":
        return handle_of(function(operand_of(other), operand_of(self)))

    return apply_reflected if is_reflected else apply


class TensorHandle(_MadeByLanguage):
    """A tensor in a kernel: a value that was loaded or computed, or a ref to one in memory.

    Operators compute element by element and keep the dtype of their operands: narrow floats are
    computed in f32 and rounded once. ``//`` and ``%`` round down, as Python's.
    """

    __slots__ = ("_addr", "held")

    held: Any  # a Value, or a Ref
    _addr: int | None

    @property
    def _type(self) -> BlockType:
        kind: BlockType = self.held.type
        return kind

    @property
    def addr(self) -> int:
        """The address that it was loaded from, or names."""
        if self._addr is None:
            found = f"the address of a computed value {self!r}"
            fix = "tl.store it, and use the address that it was stored at"
            raise current_program().error(found, "the handle of a load or a ref", fix)
        return self._addr

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape

    @property
    def dtype(self) -> str:
        """The text of its dtype, as "f16"; of a comparison "bool"."""
        return self._type.dtype.device_name

    @property
    def nbytes(self) -> int:
        return self._type.num_bytes

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """Its elements, for Python: the program waits until they are there."""
        return current_program().elements(operand_of(self)).copy()

    def to(self, dtype: str) -> "TensorHandle":
        """Return the same values in another dtype."""
        return handle_of(operand_of(self).to(parse_dtype(dtype)))

    def __repr__(self) -> str:
        kind = "ref" if isinstance(self.held, Ref) else "tensor"
        return f"<TensorHandle of a {kind} {self.dtype}{list(self.shape)}>"

    def __str__(self) -> str:
        """Return the elements as a text, for ``print``; the program waits for them."""
        return repr(self) if isinstance(self.held, Ref) else str(self.held)

    def __bool__(self) -> bool:
        return bool(operand_of(self))

    def __int__(self) -> int:
        return int(operand_of(self))

    def __index__(self) -> int:
        return int(operand_of(self))

    def __float__(self) -> float:
        return float(operand_of(self))

    def __getitem__(self, key: Any) -> "TensorHandle":
        """Add axes, or take whole slices, as in ``x[:, None]``."""
        return handle_of(operand_of(self)[key])

    __add__ = _operator(operator.add)
    __radd__ = _operator(operator.add, is_reflected=True)
    __sub__ = _operator(operator.sub)
    __rsub__ = _operator(operator.sub, is_reflected=True)
    __mul__ = _operator(operator.mul)
    __rmul__ = _operator(operator.mul, is_reflected=True)
    __truediv__ = _operator(_quotient)
    __rtruediv__ = _operator(_quotient, is_reflected=True)
    __floordiv__ = _operator(operator.floordiv)
    __rfloordiv__ = _operator(operator.floordiv, is_reflected=True)
    __mod__ = _operator(operator.mod)
    __rmod__ = _operator(operator.mod, is_reflected=True)
    __lt__ = _operator(operator.lt)
    __le__ = _operator(operator.le)
    __gt__ = _operator(operator.gt)
    __ge__ = _operator(operator.ge)
    __eq__ = _operator(operator.eq)  # type: ignore[assignment]  # gives a tensor
    __ne__ = _operator(operator.ne)  # type: ignore[assignment]

    def __neg__(self) -> "TensorHandle":
        return handle_of(-operand_of(self))

    __hash__ = None  # type: ignore[assignment]  # equality gives a tensor


class CompletionHandle(_MadeByLanguage):
    """A composite that has begun; ``tl.wait`` waits for its end."""

    __slots__ = ("dtype", "pending")

    pending: Handle
    dtype: DType  # of what it gives, if it stores nothing

    def wait(self) -> TensorHandle | None:
        """Suspend the program until it has ended; give its tensor, if it was not stored."""
        block = self.pending.wait()
        return None if block is None else handle_of(rounded(block, self.dtype))


class RecvFuture(_MadeByLanguage):
    """A message that is expected; ``tl.wait`` gives its tensor."""

    __slots__ = ("pending", "shape")

    pending: Handle
    shape: tuple[int, ...]

    def wait(self) -> TensorHandle:
        """Suspend the program until the message is there."""
        block = self.pending.wait()
        return handle_of(block.reshape(self.shape))


def handle_of(value: Any, addr: int | None = None) -> TensorHandle:
    """Return the handle of a value or a ref."""
    return TensorHandle._made(held=value, _addr=addr)


def operand_of(value: Any) -> Any:
    """Return what the language of ours computes with: a value or a number."""
    if isinstance(value, TensorHandle):
        if isinstance(value.held, Ref):
            found = f"{value!r}, of which nothing has been moved, as an operand"
            fix = "tl.load it, or pass it to tl.composite"
            raise current_program().error(found, "a tensor that was loaded or computed", fix)
        return value.held
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bool | int | float):
        return value
    found = f"{value!r} of type {type(value).__name__} as an operand"
    raise current_program().error(found, "a TensorHandle or a number", "pass one of these")


def rounded(value: Any, dtype: DType) -> Any:
    """Return a result in the dtype that its operands have."""
    return value if value.dtype is dtype else value.to(dtype)


def parse_dtype(text: Any) -> DType:
    """Return the dtype of a text such as "f16"; refuse another spelling, and name the right one."""
    if isinstance(text, str) and text in DTYPES:
        return DTYPES[text]
    try:
        fix = f'did you mean "{dtype_of(text).device_name}"?'
    except KernelTypeError:
        fix = "name one of them"
    raise current_program().error(f"the dtype {text!r}", "one of " + ", ".join(DTYPES), fix)
