"""What an op means once its operands' types are known: result type, NumPy function, charges."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tilewright.errors import InternalError, KernelError, KernelTypeError, RegistryError
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType

Array: TypeAlias = np.ndarray[Any, Any]
ResultType: TypeAlias = BlockType | tuple[BlockType, ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """``times`` ops of the vector unit, one after the other, each on so many elements."""

    op: str  # a line of the device's cost table
    elements: int
    dtype: DType  # what the lanes compute in; for a move, what is moved
    times: int = 1


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

    @property
    def cost_op(self) -> str | None:
        """The line of the cost table, if the op is one op of the vector unit."""
        charge = self._only_charge()
        return charge.op if charge else None

    @property
    def cost_elements(self) -> int:
        charge = self._only_charge()
        return charge.elements * charge.times if charge else 0

    @property
    def cost_dtype(self) -> DType | None:
        charge = self._only_charge()
        return charge.dtype if charge else None

    def _only_charge(self) -> Charge | None:
        match self.charges:
            case ():
                return None
            case (Charge() as charge,):
                return charge
        found = f"{self.charges}"
        raise InternalError("bound op", found, "one charge of the vector unit", "read charges")


Bind: TypeAlias = Callable[[str, tuple[BlockType, ...], tuple[Any, ...]], Bound]


@dataclass(frozen=True, slots=True)
class Meaning:
    """One op: how many operands it may have, which attributes, and how it binds to types."""

    name: str
    num_operands: tuple[int, ...]
    attributes: tuple[str, ...]
    binder: Bind

    def bind(self, types: tuple[BlockType, ...], attributes: tuple[Any, ...] = ()) -> Bound:
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


def evaluate(bound: Bound, *operands: Array) -> Any:
    """Run it with NumPy's warnings off: infinities and NaN are results like others."""
    with np.errstate(all="ignore"):
        return bound.run(*operands)


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


def check_count(op: str, name: str, value: object, *, low: int = 1) -> None:
    """An attribute that counts something is a whole number from ``low`` up."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        found = f"{name}={value!r}"
        raise KernelError(op, found, f"a whole number from {low} up", f"change {name}")
