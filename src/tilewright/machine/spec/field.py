"""Fields and sections of a machine file: units, bounds, blocks, and rules that join fields."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from tilewright.errors import UnitError
from tilewright.limits import MAX_DISTANCE_PS
from tilewright.units import parse_bytes, parse_ps, parse_rate

RULE = "rule"
"""The type of such an error among pydantic's."""

MAX_SIZE_BYTES = 2**51  # what a physical address can name
MAX_BYTES_PER_US = 10**12  # one exabyte per second
MAX_COUNT = 2**20
MAX_CLOCKS = 2**20
MAX_UM = 10**9
MAX_QUANTITY_LETTERS = 64
QUANTITY = "quantity"  # the type of such an error among pydantic's


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """Paths are relative to the spec that has the rule."""

    path: str
    found: str
    expected: str
    fix: str
    related: tuple[str, ...] = ()  # the other fields that the rule reads

    def __str__(self) -> str:
        return f"{self.path}: found {self.found}, expected {self.expected}; {self.fix}"


def is_power_of_two(number: int) -> bool:
    """
    >>> [number for number in range(10) if is_power_of_two(number)]
    [1, 2, 4, 8]
    """
    return number > 0 and number & (number - 1) == 0


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
            context = {"text": "\n".join(map(str, broken)), "broken": broken}
            raise PydanticCustomError(RULE, "{text}", context)
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


def _check_parameter(value: object) -> object:
    # once for all members of the union: pydantic would complain for each of them
    if isinstance(value, int | str):
        return value
    raise PydanticCustomError("parameter", "expected a number, text, true or false")


Parameter = Annotated[int | str | bool, BeforeValidator(_check_parameter)]


class BlockSpec(Spec):
    """A part of the hardware that behaves; ``impl`` puts a user's class in its place."""

    impl: str | None = Field(
        None, description="package.module:Class of a user's block; null: the one in the package"
    )
    parameters: dict[str, Parameter] = Field(
        default_factory=dict, description="handed to the user's class as keyword arguments"
    )


def kind_or(default: str) -> Callable[[object], str | None]:
    """Reads the kind of a section; one that does not say it is of the default kind.

    >>> kind_or("mesh")({"rows": 6}), kind_or("mesh")({"kind": "ring"})
    ('mesh', 'ring')
    """

    def kind_of(section: object) -> str | None:
        if isinstance(section, dict):
            return str(section.get("kind", default))
        return getattr(section, "kind", None)

    return kind_of


def walk_sections(spec: Spec, path: str = "") -> Iterator[tuple[str, Spec]]:
    """The spec itself and all specs inside of it, in the order of their fields.

    >>> from tilewright.machine.spec.machine import SipSpec
    >>> [path for path, _ in walk_sections(SipSpec(), "sip")]
    ['sip', 'sip.io', 'sip.io_cpu']
    """
    yield path, spec
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if isinstance(value, Spec):
            yield from walk_sections(value, f"{path}.{name}" if path else name)
