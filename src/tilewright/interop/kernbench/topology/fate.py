"""What may become of a key of a topology, and the units of its numbers."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """How a number of a topology becomes an integer of a machine: times ``factor``, exactly."""

    factor: int
    expected: str  # what an error says of a number that is not whole then


GB_PER_S = Unit(1_000, "GB/s with at most three decimals")  # bytes per us
NS = Unit(1_000, "ns with at most three decimals")  # ps
MM = Unit(1_000, "mm with at most three decimals")  # um
NS_PER_MM = Unit(1_000, "ns per mm with at most three decimals")  # ps per mm
GHZ = Unit(10**9, "GHz with at most nine decimals")  # Hz
GIB = Unit(2**30, "GiB that are whole bytes")
MIB = Unit(2**20, "MiB that are whole bytes")
BYTES = Unit(1, "a whole number of bytes")
SHARE = Unit(100, "a share with at most two decimals")  # percent
COUNT = Unit(1, "a whole number")


@dataclass(frozen=True, slots=True)
class Sets:
    """A number that is a field of the machine."""

    field: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class SetsPair:
    """Two numbers, x and y, that are a field of the machine."""

    field: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number of at least 1 that a rule reads (``rules``)."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of at least 0 that a rule reads."""


@dataclass(frozen=True, slots=True)
class Names:
    """A word, or a list of words, that a rule reads."""

    choices: tuple[str, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Must:
    """A number that only one value is right for: what the machine has anyway."""

    value: Fraction
    fix: str


@dataclass(frozen=True, slots=True)
class Builtin:
    """The name of an implementation: one of KernBench's own has no effect, another is refused."""


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """A key that is accepted and listed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A known key that nothing here corresponds to."""

    fix: str


Fate = Sets | SetsPair | Count | Number | Names | Must | Builtin | WithoutEffect | Refused
