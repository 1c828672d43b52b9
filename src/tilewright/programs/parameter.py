"""Parameters of a program: read off its signature, set by text, made smaller on small machines.

Values that a user gave stay as they are: only defaults become smaller, and every change is told.
"""

import inspect
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from tilewright.errors import BenchError
from tilewright.machine.spec import MachineSpec

ParameterValue = bool | int | float | str

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class BenchParameter:
    """One parameter with its only default; ``choices`` is empty unless the values are listed."""

    name: str
    kind: type[ParameterValue]
    default: ParameterValue
    help: str = ""
    choices: tuple[ParameterValue, ...] = ()

    @property
    def expected(self) -> str:
        """For people: what may be given."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        words = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
        return words[self.kind]

    def parse(self, text: str, *, where: str) -> ParameterValue:
        """The value that a text stands for.

        >>> BenchParameter("m", int, 128).parse("64", where="qkv_gemm")
        64
        """
        value: ParameterValue | None = None
        with suppress(KeyError, ValueError):
            value = _TRUTH[text.lower()] if self.kind is bool else self.kind(text)
        if value is None or (self.choices and value not in self.choices):
            found, fix = f"{self.name}={text}", f"write it like {self.name}={self.default}"
            raise BenchError(where, found, self.expected, fix)
        return value


def parameters_of(run: Callable[..., Any], *, where: str) -> tuple[BenchParameter, ...]:
    """What comes after ``torch`` in the signature of ``run``, in its order.

    The type is the annotation's or the default's; a text in ``Annotated`` is the help.
    """
    hints = get_type_hints(run, include_extras=True)
    named = list(inspect.signature(run).parameters.values())[1:]
    return tuple(_parameter(parameter, hints.get(parameter.name), where) for parameter in named)


def parse_parameters(
    parameters: tuple[BenchParameter, ...], texts: Mapping[str, str], *, where: str
) -> dict[str, ParameterValue]:
    """All parameters by name: as the texts say, else their defaults."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in texts:
        if name not in known:
            found = f"a parameter {name!r}"
            expected = "one of " + ", ".join(known) if known else "none: it takes no parameters"
            raise BenchError(where, found, expected, "correct its name, or leave it out")
    return {
        name: parameter.parse(texts[name], where=where) if name in texts else parameter.default
        for name, parameter in known.items()
    }


def _parameter(parameter: inspect.Parameter, hint: Any, where: str) -> BenchParameter:
    name, default = parameter.name, parameter.default
    by_name = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if default is parameter.empty or not by_name:
        found = f"a parameter {name!r} without a default"
        fix = "give it a default, so that it can be left out"
        raise BenchError(where, found, "only parameters with defaults after the first", fix)
    text, plain = "", hint
    if get_origin(hint) is Annotated:
        plain, *notes = get_args(hint)
        text = next((note for note in notes if isinstance(note, str)), "")
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind = type(default)
    declared = {type(choice) for choice in choices} if choices else {plain or kind}
    if kind not in (bool, int, float, str) or declared != {kind}:
        found = f"a parameter {name!r} of type {plain or kind} with the default {default!r}"
        expected = "int, float, bool, str or a Literal of them, and a default of that type"
        raise BenchError(where, found, expected, "correct its annotation or its default")
    return BenchParameter(name, kind, default, text, choices)


Values = Mapping[str, ParameterValue]
Groups = tuple[tuple[str, ...], ...]
Changes = dict[str, ParameterValue]

Slot = Annotated[int, "bytes of a slot of a ring; a ring has 4 slots"]
SLOTS = 4


@dataclass(frozen=True, slots=True)
class Offer:
    """What a program may use of a machine: SIPs, cubes of a SIP and PEs of a cube."""

    sips: int
    cubes: int
    pes: int
    machine: MachineSpec

    def count(self, name: str) -> int:
        """Return how many there are of ``sips``, ``cubes`` or ``pes``."""
        return {"sips": self.sips, "cubes": self.cubes, "pes": self.pes}[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFit:
    """Which defaults of a program may change, and how.

    ``counts`` returns parameters that must be others for the machine to have the parts. When a PE
    has no room for a tile or a result, values of ``instead`` are taken and then ``tiles`` halved;
    while memories have no room for a tensor, ``sizes`` are, and then ``parts`` doubled up to their
    limits. Halved is the largest of the first group, and when all of them are 1, of the next.
    """

    counts: Callable[[Offer, Values], Changes] = lambda _offer, _values: {}
    instead: Values = field(default_factory=dict)
    tiles: Groups = ()
    sizes: Groups = ()
    parts: Mapping[str, int] = field(default_factory=dict)


NO_FIT = ProgramFit()


def fit_team(offer: Offer, values: Values) -> Changes:
    """Take no more SIPs and cubes than there are.

    >>> offer = Offer(sips=1, cubes=1, pes=8, machine=MachineSpec())
    >>> fit_team(offer, {"cubes": 4, "pes": 0})
    {'cubes': 1}
    """
    return {
        name: offer.count(name)
        for name in ("sips", "cubes", "pes")
        if name in values and _int(values, name) > offer.count(name)
    }


def fit_below(name: str, limit: str) -> Callable[[Offer, Values], Changes]:
    """Return a `fit_team` that sets a parameter no higher than another."""

    def counts(offer: Offer, values: Values) -> Changes:
        is_above = _int(values, name) > _int(values, limit)
        return fit_team(offer, values) | ({name: _int(values, limit)} if is_above else {})

    return counts


def fit_shares(size: str) -> Callable[[Offer, Values], Changes]:
    """Return a `fit_team` that leaves every PE one of ``size`` at least: fewer PEs, then cubes.

    >>> offer = Offer(sips=1, cubes=4, pes=8, machine=MachineSpec())
    >>> fit_shares("rows")(offer, {"rows": 12, "cubes": 4, "pes": 0})
    {'pes': 3}
    """

    def counts(offer: Offer, values: Values) -> Changes:
        found = fit_team(offer, values)
        taken = {
            name: int(found.get(name) or values[name] or offer.count(name))
            for name in ("sips", "cubes", "pes")
            if name in values
        }
        for name in reversed(taken):
            others = prod(taken.values()) // taken[name]
            fitting = max(1, _int(values, size) // others)
            if fitting < taken[name]:
                found[name] = taken[name] = fitting
        return found

    return counts


def fit_slot(offer: Offer, values: Values, num_rings: int) -> Changes:
    """Take slots of a size that leaves the TCM's reserved part room for the rings of a PE.

    Rings in another memory (``buffer``) keep theirs.
    """
    room_bytes = offer.machine.pe.tcm.reserved_bytes // (SLOTS * num_rings)
    if values.get("buffer", "tcm") != "tcm" or _int(values, "slot") <= room_bytes:
        return {}
    return {"slot": 1 << (max(1, room_bytes).bit_length() - 1)}


def halve(values: Values, groups: Groups, free: Set[str]) -> Changes:
    """Return the largest value of the first group that is free to change, halved.

    Returns nothing when no value of any group is above 1.

    >>> halve({"tile_m": 16, "tile_k": 64}, (("tile_m", "tile_k"),), {"tile_m", "tile_k"})
    {'tile_k': 32}
    """
    for names in groups:
        sizes = {name: _int(values, name) for name in names if name in free}
        largest = max(sizes, key=lambda name: sizes[name], default="")
        if sizes.get(largest, 1) > 1:
            return {largest: sizes[largest] // 2}
    return {}


def double(values: Values, limits: Mapping[str, int], free: Set[str]) -> Changes:
    """Return the first value that is free to change and below its limit, doubled."""
    for name, limit in limits.items():
        if name in free and 2 * _int(values, name) <= limit:
            return {name: 2 * _int(values, name)}
    return {}


def _int(values: Values, name: str) -> int:
    return int(values[name])
