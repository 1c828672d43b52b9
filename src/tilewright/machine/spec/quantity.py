"""Field types of a machine file: integers in the unit of the field's name, or text with a unit."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tilewright.errors import UnitError
from tilewright.units import MAX_PS, parse_bytes, parse_ps, parse_rate

__all__ = (
    "BytesPerUs",
    "Clocks",
    "Count",
    "Latency",
    "Micrometres",
    "PositiveTime",
    "Size",
    "Spec",
)

MAX_SIZE_BYTES = 2**51  # what a physical address can name
MAX_BYTES_PER_US = 10**12  # one exabyte per second
MAX_COUNT = 2**20
MAX_CLOCKS = 2**20
MAX_UM = 10**9


class Spec(BaseModel):
    """Frozen input: unknown keys and wrong types are refused, each default stands in its field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _read_with(parse: Callable[[str], int]) -> Callable[[object], object]:
    def read(value: object) -> object:
        if not isinstance(value, str):
            return value  # pydantic's strict int check follows
        try:
            return parse(value)
        except UnitError as error:
            raise ValueError(f"{error.expected}; {error.fix}") from error

    return read


_time, _size, _rate = _read_with(parse_ps), _read_with(parse_bytes), _read_with(parse_rate)

Latency = Annotated[int, BeforeValidator(_time), Field(ge=0, le=MAX_PS // 2**20)]
PositiveTime = Annotated[int, BeforeValidator(_time), Field(ge=1, le=MAX_PS // 2**20)]
Size = Annotated[int, BeforeValidator(_size), Field(ge=1, le=MAX_SIZE_BYTES)]
BytesPerUs = Annotated[int, BeforeValidator(_rate), Field(ge=1, le=MAX_BYTES_PER_US)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Clocks = Annotated[int, Field(ge=0, le=MAX_CLOCKS)]
Micrometres = Annotated[int, Field(ge=0, le=MAX_UM)]
