"""The element types of values and fields."""

from enum import StrEnum
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
