"""What an op means once its operands' types are known: result type, NumPy function, charges."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tilewright.errors import InternalError, KernelError, KernelTypeError, RegistryError
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType, float32

Array: TypeAlias = np.ndarray[Any, Any]
Types: TypeAlias = tuple[BlockType, ...]
ResultType: TypeAlias = BlockType | Types


@dataclass(frozen=True, slots=True)
class Charge:
    """``times`` ops of the vector unit, one after the other, each on so many elements."""

    op: str  # a line of the device's cost table
    elements: int
    dtype: DType  # what the lanes compute in; for a move, what is moved
    times: int = 1


def charge_for(op: str, num_elements: int, dtype: DType, times: int = 1) -> Charge:
    """The lanes compute narrow floats in f32."""
    narrow = dtype.is_floating() and dtype.primitive_bitwidth < float32.primitive_bitwidth
    return Charge(op, num_elements, float32 if narrow else dtype, times)


@dataclass(frozen=True, slots=True)
class GemmCharge:
    """``batch`` products of m x k by k x n on the GEMM unit."""

    m: int
    n: int
    k: int
    batch: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class Bound:
    """An op with known operand types.

    ``run`` takes arrays in the storage dtypes of the operands and gives one (or a tuple of them) in
    that of the result. It is pure: it never writes into an operand, though a result may be a view
    of one. A result of rank 0 may be a NumPy scalar. It sets floating-point flags freely, so call
    it under ``np.errstate(all="ignore")``, as ``evaluate`` does.
    """

    type: ResultType
    run: Callable[..., Any]
    charges: tuple[Charge | GemmCharge, ...]  # none: the op moves nothing and is no command
    transposes: bool = False  # the last two axes change places: a product reads the operand instead
    num_factors: int = 0  # the first operands, if they are read as they lie, transposed or not


Bind: TypeAlias = Callable[[str, Types, tuple[Any, ...]], Bound]


@dataclass(frozen=True, slots=True)
class Meaning:
    """One op: how many operands it may have, which attributes, and how it binds to types."""

    name: str
    num_operands: tuple[int, ...]
    attributes: tuple[str, ...]
    binder: Bind

    def bind(self, types: Types, attributes: tuple[Any, ...] = ()) -> Bound:
        """Pure and worth caching: the result depends on the arguments alone."""
        if len(types) not in self.num_operands:
            expected = " or ".join(map(str, self.num_operands)) + " operands"
            refuse(self.name, types, expected, "change the call")
        if len(attributes) != len(self.attributes):
            found = f"{len(attributes)} attributes {attributes!r}"
            expected = f"{len(self.attributes)}: {', '.join(self.attributes) or 'none'}"
            raise InternalError(self.name, found, expected, "correct the caller of bind")
        return self.binder(self.name, types, attributes)


def build_table(meanings: Iterable[Meaning]) -> Mapping[str, Meaning]:
    """Names to meanings; a name has one owner."""
    table: dict[str, Meaning] = {}
    for meaning in meanings:
        if meaning.name in table:
            found = f"two meanings of {meaning.name!r}"
            raise RegistryError("kernel language", found, "one", "rename one of them")
        table[meaning.name] = meaning
    return MappingProxyType(table)


def signature(op: str, types: Iterable[BlockType]) -> str:
    """The op with its operands, as errors show it.

    >>> from tilewright.language.block_type import block_type
    >>> from tilewright.language.dtype import float16, int32
    >>> signature("add", [block_type(float16, (64, 1)), block_type(int32, ())])
    'add(fp16[64, 1], int32[])'
    """
    return f"{op}({', '.join(map(str, types))})"


def refuse(op: str, types: Iterable[BlockType], expected: str, fix: str) -> None:
    """Raise the error of operands that do not fit."""
    raise KernelTypeError(op, signature(op, types), expected, fix)


def need_floats(op: str, types: Types, dtype: DType) -> None:
    if not dtype.is_floating():
        refuse(op, types, "floats", "cast the operand with .to(tl.float32)")


def need_integers(op: str, types: Types, dtype: DType) -> None:
    if not dtype.is_int():
        refuse(op, types, "integers", "cast the operand, or use an op for floats")


def check_count(op: str, name: str, value: object, *, low: int = 1) -> None:
    """An attribute that counts something is a whole number from ``low`` up."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        found = f"{name}={value!r}"
        raise KernelError(op, found, f"a whole number from {low} up", f"change {name}")


# -- shapes --------------------------------------------------------------------------------------


def broadcast_shape(op: str, types: Types) -> tuple[int, ...]:
    """The shape of all operands together: missing axes are put in front, extents of 1 repeat.

    >>> from tilewright.language.block_type import block_type
    >>> from tilewright.language.dtype import float32
    >>> broadcast_shape("add", (block_type(float32, (64, 1)), block_type(float32, (32,))))
    (64, 32)
    """
    shape = types[0].shape
    for other in types[1:]:
        if other.shape != shape:
            shape = _pair_shape(op, types, shape, other.shape)
    return shape


def _pair_shape(
    op: str, types: Types, left: tuple[int, ...], right: tuple[int, ...]
) -> tuple[int, ...]:
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and 1 not in (a, b):
            expected = f"extents that are equal or 1; axis {axis} has {a} and {b}"
            refuse(op, types, expected, "add axes with [:, None], or change a block's shape")
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def wrap_axis(op: str, types: Iterable[BlockType], axis: object, rank: int) -> int:
    """An axis from -rank to rank - 1 as one from 0 up."""
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        found = f"axis {axis!r} in {signature(op, types)}"
        expected = f"an axis from {-rank} to {rank - 1}" if rank else "a block with axes"
        raise KernelTypeError(op, found, expected, "name one of the block's axes")
    return axis % rank


def check_blocks(op: str, types: Types) -> None:
    """All operands have one shape and are no scalars."""
    if any(each.shape != types[0].shape for each in types):
        refuse(op, types, "operands of one shape", "broadcast them first")
    if not types[0].shape:
        refuse(op, types, "a block with axes", "use the scalar as it is")
