"""Random changes of bytes, of lines of YAML and of JSON values."""

import json
from collections.abc import Callable
from typing import Any

from tests.fuzz.generator import Random

__all__ = (
    "NUMBERS",
    "WORDS",
    "mutated_bytes",
    "mutated_json",
    "mutated_yaml",
    "near_number",
    "odd_number",
)

NUMBERS = (
    0, 1, 2, 3, 4, 7, 8, 16, 63, 64, 100, 128, 255, 256, 1000, 1024, 4096, 65535, 65536, 2**20,
    2**31 - 1, 2**31, 2**32, 2**40, 10**12, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -1, -8,
    -(2**63),
)  # fmt: skip
WORDS = (
    "", " ", "x", "null", "true", "false", "yes", "~", "-", "1.5", "1e309", "nan", ".inf", "0x10",
    "12 ns", "1.5 ns", "1 GB/s", "0 GB/s", "64 KiB", "-1 ns", "9" * 40, "[]", "{}", "[1, 2]",
    "{a: 1}", "[[[[]]]]", "'", '"', "&a 1", "*a", "!!python/object:os.system x", "<<", "a: b: c",
    "\t", "#", "%TAG", "---", "\x85", "\ufeff", "é", "\U0001f4a5", "\u202e", "n" * 300, "|", ">",
    "2001-01-01", "1_000", "1:30", "a.b:C", "ring", "mesh", "torus", "detailed", "simple",
)  # fmt: skip


def odd_number(rng: Random, near: int) -> int:
    """Return a number that is a limit of something, or near another."""
    return rng.choice(NUMBERS) if rng.random() < 0.4 else near_number(rng, near)


def near_number(rng: Random, near: int) -> int:
    """Return a number that could well stand in the place of another."""
    steps: tuple[Callable[[int], int], ...] = (
        lambda value: value * 2,
        lambda value: value // 2,
        lambda value: value + 1,
        lambda value: value - 1,
        lambda value: value * 3 // 2,
        lambda value: value * 4,
        lambda value: value // 4,
        lambda _: 1,
    )
    return rng.choice(steps)(near)


def mutated_bytes(rng: Random, content: bytes, *, most: int = 4) -> bytes:
    """Return bytes with a few of them changed, removed, repeated or cut off."""
    found = bytearray(content)
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(found) + 1)
        length = min(rng.choice((1, 1, 1, 2, 4, 8, 64)), len(found) - place)
        match rng.randrange(7):
            case 0:
                found[place : place + length] = rng.randbytes(length)
            case 1:
                del found[place : place + length]
            case 2:
                found[place:place] = found[place : place + length] * rng.randint(1, 3)
            case 3:
                number = rng.choice(NUMBERS) % 2**64
                found[place : place + 8] = number.to_bytes(8, "little")
            case 4:
                number = rng.choice(NUMBERS) % 2**32
                found[place : place + 4] = number.to_bytes(4, "little")
            case 5 if found:
                found[place % len(found)] ^= 1 << rng.randrange(8)
            case _:
                if rng.random() < 0.2:
                    del found[place:]
    return bytes(found)


def mutated_yaml(rng: Random, text: str) -> str:
    """Return a YAML text with a few lines changed: mostly values, at times their structure."""
    lines = text.splitlines()
    mutate = _mutate_number if rng.random() < 0.5 else _mutate_line
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        mutate(rng, lines)
    return "\n".join(lines) + "\n"


def _mutate_number(rng: Random, lines: list[str]) -> None:
    """Change one number a little, so that the text may well stay valid."""
    with_numbers = [n for n, line in enumerate(lines) if _value_of(line)[:1].isdecimal()]
    if not with_numbers:
        return
    number = rng.choice(with_numbers)
    head, _, value = lines[number].partition(":")
    digits, _, unit = value.partition("#")[0].strip().partition(" ")
    if digits.isdecimal():
        lines[number] = f"{head}: {near_number(rng, int(digits))} {unit}".rstrip()


def _mutate_line(rng: Random, lines: list[str]) -> None:
    with_values = [n for n, line in enumerate(lines) if _value_of(line)]
    kind = rng.random()
    if with_values and kind < 0.7:
        number = rng.choice(with_values)
        head, _, value = lines[number].partition(":")
        lines[number] = f"{head}: {_other_value(rng, value.partition('#')[0].strip())}"
        return
    place = rng.randrange(len(lines) + 1)
    match rng.randrange(6):
        case 0:
            del lines[place : place + 1]
        case 1:
            lines[place:place] = lines[place : place + 1]
        case 2 if lines:
            other = rng.randrange(len(lines))
            place %= len(lines)
            lines[place], lines[other] = lines[other], lines[place]
        case 3 if lines:
            place %= len(lines)
            lines[place] = rng.choice(("  ", " ", "\t", "- ")) + lines[place]
        case 4:
            lines.insert(place, f"{rng.choice(WORDS)}: {rng.choice(WORDS)}")
        case _:
            if lines:
                place %= len(lines)
                content = mutated_bytes(rng, lines[place].encode())
                lines[place] = content.decode("utf-8", "replace")


def _value_of(line: str) -> str:
    return line.partition(":")[2].partition("#")[0].strip()


def _other_value(rng: Random, value: str) -> str:
    """Return a value in the place of another: a number mostly becomes a number."""
    digits, _, unit = value.partition(" ")
    plain = digits.replace("_", "")
    if plain.isdecimal() and rng.random() < 0.85:
        return f"{odd_number(rng, int(plain))} {unit}".strip()
    return rng.choice(WORDS)


def mutated_json(rng: Random, document: Any) -> Any:
    """Return a copy of a JSON document with a few values of it changed."""
    found = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = _mutated_value(rng, found) if rng.random() < 0.5 else _mutated_leaf(rng, found)
    return found


def _mutated_leaf(rng: Random, document: Any) -> Any:
    """Change one of all values, however deep: a document may have most of them in one place."""
    places: list[tuple[Any, Any]] = []
    waiting = [document] if isinstance(document, dict | list) else []
    while waiting:
        section = waiting.pop()
        entries = section.items() if isinstance(section, dict) else enumerate(section)
        for key, value in entries:
            places.append((section, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    if not places:
        return document
    section, key = rng.choice(places)
    if rng.random() < 0.1:
        del section[key]
    else:
        section[key] = _other_scalar(rng, section[key])
    return document


def _mutated_value(rng: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        if rng.random() < 0.1:
            del value[key]
        elif rng.random() < 0.05:
            value[rng.choice(WORDS)] = value[key]
        else:
            value[key] = _mutated_value(rng, value[key])
        return value
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        if rng.random() < 0.2:
            del value[place]
        elif rng.random() < 0.2:
            value.append(value[place])
        else:
            value[place] = _mutated_value(rng, value[place])
        return value
    return _other_scalar(rng, value)


def _other_scalar(rng: Random, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) < 2**64 and rng.random() < 0.7:  # neither infinite nor NaN
        return odd_number(rng, int(value))
    return rng.choice(
        (None, True, False, 0, 1, -1, 0.5, -0.5, 1e308, 5e-324, 10**30, 10**400, "", "x",
         [], {}, [[]], {"": 0}, float("nan"), float("inf"), rng.choice(WORDS), "\x1b[2J", "\ud800",
         rng.choice(NUMBERS))
    )  # fmt: skip
