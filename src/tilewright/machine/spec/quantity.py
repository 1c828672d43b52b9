"""Field types of a machine file: integers in the unit of the field's name, or text with a unit."""

from collections.abc import Callable, Iterator
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from tilewright.errors import UnitError
from tilewright.limits import MAX_DISTANCE_PS
from tilewright.machine.spec.rule import BrokenRule, rule_error
from tilewright.units import parse_bytes, parse_ps, parse_rate

MAX_SIZE_BYTES = 2**51  # what a physical address can name
MAX_BYTES_PER_US = 10**12  # one exabyte per second
MAX_COUNT = 2**20
MAX_CLOCKS = 2**20
MAX_UM = 10**9
MAX_QUANTITY_LETTERS = 64
QUANTITY = "quantity"  # the type of such an error among pydantic's


class Spec(BaseModel):
    """Frozen input: unknown keys and wrong types are refused, each default stands in its field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def broken_rules(self) -> Iterator[BrokenRule]:
        """What does not fit together in here, of fields that are right one by one."""
        yield from ()

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        broken = tuple(self.broken_rules())
        if broken:
            raise rule_error(broken)
        return self


def _read_with(parse: Callable[[str], int]) -> Callable[[object], object]:
    def read(value: object) -> object:
        if not isinstance(value, str):
            return value  # pydantic's strict int check follows
        if len(value) > MAX_QUANTITY_LETTERS:
            raise _quantity_error(
                "a number and a unit", f"use at most {MAX_QUANTITY_LETTERS} letters"
            )
        try:
            return parse(value)
        except UnitError as error:
            raise _quantity_error(error.expected, error.fix) from error

    return read


def _quantity_error(expected: str, fix: str) -> PydanticCustomError:
    parts = {"expected": expected, "fix": fix}
    return PydanticCustomError(QUANTITY, "expected {expected}; {fix}", parts)


_time, _size, _rate = _read_with(parse_ps), _read_with(parse_bytes), _read_with(parse_rate)

Latency = Annotated[int, BeforeValidator(_time), Field(ge=0, le=MAX_DISTANCE_PS)]
PositiveTime = Annotated[int, BeforeValidator(_time), Field(ge=1, le=MAX_DISTANCE_PS)]
Size = Annotated[int, BeforeValidator(_size), Field(ge=1, le=MAX_SIZE_BYTES)]
ReservedSize = Annotated[int, BeforeValidator(_size), Field(ge=0, le=MAX_SIZE_BYTES)]
BytesPerUs = Annotated[int, BeforeValidator(_rate), Field(ge=1, le=MAX_BYTES_PER_US)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Clocks = Annotated[int, Field(ge=0, le=MAX_CLOCKS)]
Micrometres = Annotated[int, Field(ge=0, le=MAX_UM)]
