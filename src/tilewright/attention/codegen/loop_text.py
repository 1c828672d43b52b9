"""Lines of a body sorted into those of a loop, those ahead of it, and those that nobody needs."""

import re
from collections.abc import Iterable, Sequence

__all__ = ("indented", "split_loop", "without_unused")

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")
_EFFECTS = ("tl.store(", "tl.send(", "tl.recv(")
_TARGETS = re.compile(r"^\s*((?:[A-Za-z_]\w*)(?:, *[A-Za-z_]\w*)*) (?:[-+*|&]?=) ")


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _units(lines: Sequence[str]) -> list[list[str]]:
    """Statements: a line with the remarks before it, and what is indented under it."""
    units: list[list[str]] = []
    is_open = False
    for line in lines:
        if units and (is_open or line.startswith(" ")):
            units[-1].append(line)
        else:
            units.append([line])
        is_open = line.startswith("#")
    return units


def _code(unit: Sequence[str]) -> list[str]:
    return [line.partition("  # ")[0] for line in unit if not line.lstrip().startswith("#")]


def _assigned(unit: Sequence[str]) -> set[str]:
    found = (_TARGETS.match(line) for line in _code(unit))
    return {name.strip() for match in found if match for name in match[1].split(",")}


def _used(unit: Sequence[str]) -> set[str]:
    """Every name in it; what it assigns counts as used if it stands on the right, too."""
    names: set[str] = set()
    for line in _code(unit):
        match = _TARGETS.match(line)
        plain = match is not None and match[0].rstrip().endswith(" =")
        names.update(_NAME.findall(line[match.end() :] if match and plain else line))
    return names


def split_loop(lines: Sequence[str], varying: Iterable[str]) -> tuple[list[str], list[str]]:
    """What does not depend on the varying names, and what does. Order is kept in both.

    >>> split_loop(["a = q + 1", "b = page + a", "tl.store(out, b)"], ["page"])
    (['a = q + 1'], ['b = page + a', 'tl.store(out, b)'])
    """
    depends = set(varying)
    ahead: list[str] = []
    inside: list[str] = []
    for unit in _units(lines):
        if depends & (_used(unit) | _assigned(unit)):
            depends |= _assigned(unit)
            inside += unit
        else:
            ahead += unit
    return ahead, inside


def without_unused(lines: Sequence[str], wanted: Iterable[str] = ()) -> list[str]:
    """Without assignments that no store, no message and none of the wanted names needs.

    >>> without_unused(["a = 1", "b = a", "c = a", "tl.store(out, c)"])
    ['a = 1', 'c = a', 'tl.store(out, c)']
    """
    needed = set(wanted)
    kept: list[list[str]] = []
    for unit in reversed(_units(lines)):
        assigned = _assigned(unit)
        is_pure = assigned and not any(effect in line for line in unit for effect in _EFFECTS)
        if not is_pure or assigned & needed:
            needed |= _used(unit)
            kept.append(unit)
    return [line for unit in reversed(kept) for line in unit]
