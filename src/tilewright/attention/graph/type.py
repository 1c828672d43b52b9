"""The type of a value: format, symbolic leading axis, inner shape, element type."""

import math
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Self

from tilewright.units import DTYPE_BITS


class DType(StrEnum):
    """Fields are stored in one of these; computed values are float32, int32 or bool."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3 = "float8_e4m3"
    FLOAT8_E5M2 = "float8_e5m2"
    INT32 = "int32"
    INT8 = "int8"
    INT4 = "int4"
    BOOL = "bool"

    @property
    def bits(self) -> int:
        """Bits of one stored element."""
        return DTYPE_BITS[self.short_name]

    @property
    def short_name(self) -> str:
        """The name of the type in the tables of `tilewright.units`: ``f16``, ``f8e4m3``, ``i4``."""
        return self.value.replace("float", "f").replace("int", "i").replace("_", "")

    @property
    def array_name(self) -> str:
        """The name that NumPy or torch has for it in memory, where one of int4 takes a byte."""
        return {DType.FLOAT8_E4M3: "float8_e4m3fn", DType.INT4: "int8"}.get(self, self.value)

    @property
    def is_float(self) -> bool:
        return self.value.startswith(("float", "bfloat"))

    @property
    def is_integer(self) -> bool:
        return self.value.startswith("int")

    @property
    def computed(self) -> Self:
        """What arithmetic on this type yields: float32, int32 or bool."""
        kind = type(self)
        if self.is_float:
            return kind.FLOAT32
        return kind.INT32 if self.is_integer else kind.BOOL


class FORMAT(IntEnum):
    """What one entry of the leading axis stands for. Numbers and names are those users know."""

    BATCHED = 0  # one entry per row, that is per request and KV head
    RAGGED = 1  # one entry per page of the row; on the cache side the page at hand
    PAGED = 2  # a cache field: one entry per page, kept in the pool
    PARAMETER = 3  # a learned constant, with a table per layer or without
    SLOTTED = 4  # a request cache: the slot of the row, zero until the row saves to it


class Leading(StrEnum):
    """The leading axis as a symbol; its length is known at each step only."""

    ONE = "1"
    PAGES = "S"
    NONE = "-"


class Side(StrEnum):
    """Which of the two programs of a flow a node belongs to."""

    CACHE = "cache"  # runs when a page is complete
    INDEXER = "indexer"  # runs at every decode step


class Span(StrEnum):
    """Which pages of a row an op over the page axis sees."""

    MIDDLE = "middle"  # without the reserved first and last pages
    ALL = "all"  # every page of the row, also the unfinished last one


@dataclass(frozen=True, slots=True)
class ValueType:
    """``shape`` is inner: two sizes, or three (heads first) for a parameter with heads.

    ``token_axes`` are the inner axes (1, 2) that run over the tokens of a page. Whatever reduces or
    contracts such an axis leaves out the tokens that are not there yet, in the last page of a row.

    >>> str(ValueType(FORMAT.RAGGED, Leading.PAGES, (1, 4), DType.FLOAT32))
    'RAGGED float32 [S, 1, 4]'
    """

    format: FORMAT
    leading: Leading
    shape: tuple[int, ...]
    dtype: DType
    token_axes: tuple[int, ...] = ()

    def __str__(self) -> str:
        sizes = ", ".join([str(self.leading), *map(str, self.shape)])
        tokens = f" tokens:{','.join(map(str, self.token_axes))}" if self.token_axes else ""
        return f"{self.format.name} {self.dtype} [{sizes}]{tokens}"

    def sizes_with(self, dim: int, size: int) -> list[int]:
        """Return both inner sizes, that of axis ``dim`` replaced."""
        return [size if axis == dim else self.shape[axis - 1] for axis in (1, 2)]

    def with_shape(self, *shape: int, token_axes: tuple[int, ...] = ()) -> "ValueType":
        return replace(self, shape=shape, token_axes=token_axes)

    @property
    def num_elements(self) -> int:
        """Elements of one entry of the leading axis."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Stored bytes of one entry of the leading axis, rounded up to whole bytes."""
        return -(-self.num_elements * self.dtype.bits // 8)
