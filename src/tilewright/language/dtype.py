"""Dtypes of the kernel language: Triton's, and int4. What they are, not what ops make of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.errors import KernelTypeError
from tilewright.units import DTYPE_BITS


class Kind(IntEnum):
    """Orders dtypes: a Python scalar of a lower or equal kind does not promote a block."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


class Signedness(Enum):
    """Whether an integer dtype has negative values."""

    SIGNED = 0
    UNSIGNED = 1


def _is_named(name: str) -> "Callable[[DType], bool]":
    """Return the method that says whether a dtype is the one of a name."""
    return lambda self: self.name == name


@dataclass(frozen=True, eq=False, slots=True)
class DType:
    """One object per dtype: equal means identical, so a dtype is a fast key of a table.

    >>> float32, str(float32), float32.device_name, float32.primitive_bitwidth
    (tl.float32, 'fp32', 'f32', 32)
    """

    name: str  # as Triton spells it: "fp32"
    language_name: str  # the name in the language: "float32"
    device_name: str  # the name in the device's tables: "f32"
    kind_of_value: Kind
    primitive_bitwidth: int  # 1 for int1, which memory keeps in a byte
    storage: np.dtype[Any]  # elements at rest
    compute: np.dtype[Any]  # elements while an op works on them, before it rounds once
    fp_mantissa_width: int = 0  # explicit bits; 0 for integers
    signed: bool = True
    step: int = field(init=False)  # bytes from one to the next in memory; of int4 halves of a byte

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", max(1, self.bits // 8))

    @property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return DTYPE_BITS[self.device_name]

    @property
    def itemsize(self) -> int:
        """Whole bytes of an element's primitive bits, as Triton counts them."""
        return self.primitive_bitwidth // 8

    @property
    def scalar(self) -> "DType":
        """The dtype of an element, as of a block's type."""
        return self

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer; a float has none."""
        self._need_int("int_bitwidth")
        return self.primitive_bitwidth

    @property
    def int_signedness(self) -> Signedness:
        """Of an integer; int1 counts as unsigned."""
        self._need_int("int_signedness")
        return Signedness.SIGNED if self.signed else Signedness.UNSIGNED

    def kind(self) -> Kind:
        """Bool below integers below floats."""
        return self.kind_of_value

    def is_floating(self) -> bool:
        return self.kind_of_value is Kind.FLOATING

    def is_standard_floating(self) -> bool:
        """A float other than an fp8."""
        return self.is_floating() and self.primitive_bitwidth > 8

    def is_int(self) -> bool:
        """An integer or int1."""
        return self.kind_of_value is not Kind.FLOATING

    def is_int_signed(self) -> bool:
        return self.is_int() and self.signed

    def is_int_unsigned(self) -> bool:
        """An unsigned integer or int1."""
        return self.is_int() and not self.signed

    def is_bool(self) -> bool:
        return self.kind_of_value is Kind.BOOLEAN

    is_int1 = is_bool

    def is_fp8(self) -> bool:
        return self.is_floating() and self.primitive_bitwidth == 8

    is_int4 = _is_named("int4")
    is_int8 = _is_named("int8")
    is_int16 = _is_named("int16")
    is_int32 = _is_named("int32")
    is_int64 = _is_named("int64")
    is_uint8 = _is_named("uint8")
    is_uint16 = _is_named("uint16")
    is_uint32 = _is_named("uint32")
    is_uint64 = _is_named("uint64")
    is_fp8e4nv = _is_named("fp8e4nv")
    is_fp8e5 = _is_named("fp8e5")
    is_fp16 = _is_named("fp16")
    is_bf16 = _is_named("bf16")
    is_fp32 = _is_named("fp32")
    is_fp64 = _is_named("fp64")

    def is_ptr(self) -> bool:
        return False

    is_block = is_ptr

    def get_int_max_value(self) -> int:
        """The largest value of an integer dtype."""
        return int(2 ** (self.int_bitwidth - self.signed) - 1)

    def get_int_min_value(self) -> int:
        """The smallest value of an integer dtype."""
        return -int(2 ** (self.int_bitwidth - 1)) if self.signed else 0

    def _need_int(self, asked: str) -> None:
        if not self.is_int():
            found = f"{asked} asked of {self!r}"
            raise KernelTypeError("dtype", found, "an integer dtype", "ask is_int() first")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"tl.{self.language_name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of, (self.name,)  # a copy would be a second object


def _float(name: str, language_name: str, device_name: str, width: int, mantissa: int,
           storage: Any, compute: Any = np.float32) -> DType:  # fmt: skip
    kind = Kind.FLOATING
    dtypes = (np.dtype(storage), np.dtype(compute))
    return DType(name, language_name, device_name, kind, width, *dtypes, mantissa)


def _int(width: int, *, signed: bool) -> DType:
    name = f"{'int' if signed else 'uint'}{width}"
    device_name = f"{'i' if signed else 'u'}{width}"
    storage = np.dtype(name)
    return DType(name, name, device_name, Kind.INTEGRAL, width, storage, storage, 0, signed)


float64 = _float("fp64", "float64", "f64", 64, 52, np.float64, np.float64)
float32 = _float("fp32", "float32", "f32", 32, 23, np.float32)
float16 = _float("fp16", "float16", "f16", 16, 10, np.float16)
bfloat16 = _float("bf16", "bfloat16", "bf16", 16, 7, ml_dtypes.bfloat16)
float8e4nv = _float("fp8e4nv", "float8e4nv", "f8e4m3", 8, 3, ml_dtypes.float8_e4m3fn)
float8e5 = _float("fp8e5", "float8e5", "f8e5m2", 8, 2, ml_dtypes.float8_e5m2)
_BOOL = np.dtype(np.bool_)
int1 = DType("int1", "int1", "bool", Kind.BOOLEAN, 1, _BOOL, _BOOL, 0, signed=False)
# ours: Triton has no int4. NumPy keeps one a byte, memory packs two
int4 = DType("int4", "int4", "i4", Kind.INTEGRAL, 4, np.dtype(ml_dtypes.int4), np.dtype(np.int8))
int8, int16, int32, int64 = (_int(width, signed=True) for width in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_int(width, signed=False) for width in (8, 16, 32, 64))

DTYPES: tuple[DType, ...] = (
    *(float64, float32, float16, bfloat16, float8e4nv, float8e5),
    *(int1, int4, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
)


def _by_name() -> Mapping[str, DType]:
    names: dict[str, DType] = {}
    for dtype in DTYPES:
        spellings = (dtype.name, dtype.language_name, dtype.device_name, dtype.storage.name)
        names.update(dict.fromkeys(spellings, dtype))
    return MappingProxyType(names)


_BY_NAME = _by_name()
_BY_STORAGE: Mapping[np.dtype[Any], DType] = MappingProxyType({d.storage: d for d in DTYPES})


def dtype_of(source: object, where: str = "dtype") -> DType:
    """The dtype that ``source`` names: ours, NumPy's, a string, or one of torch or Triton.

    >>> dtype_of("f16") is dtype_of(np.dtype(np.float16)) is dtype_of(np.float16) is float16
    True
    """
    if isinstance(source, DType):
        return source
    found: DType | None = None
    if isinstance(source, np.dtype) or (
        isinstance(source, type) and issubclass(source, np.generic)
    ):
        found = _BY_STORAGE.get(np.dtype(source))
    elif isinstance(source, str):
        found = _BY_NAME.get(source)
    elif type(source).__module__.partition(".")[0] in ("torch", "triton"):
        found = _BY_NAME.get(str(source).rpartition(".")[2])  # torch says torch.float16
    if found is None:
        expected = "one of " + ", ".join(dtype.language_name for dtype in DTYPES)
        raise KernelTypeError(where, f"{source!r}", expected, "name one of these dtypes")
    return found
