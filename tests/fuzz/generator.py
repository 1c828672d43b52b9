"""What a generator of inputs is, and what counts as a finding.

An input is named by the seed of a session, a generator and an index; nothing else decides what it
is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

__all__ = ("FindingError", "Generator", "Random", "random_of")

Value = TypeVar("Value")


class FindingError(Exception):
    """Something that tilewright must not do: a traceback, a wrong status, a difference."""


class Random:
    """Random choices of one input; those of `random.Random` that generators need."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def random(self) -> float:
        """Return a number from 0 up to 1."""
        return float(self._generator.random())

    def randrange(self, start: int, stop: int | None = None) -> int:
        """Return an integer below ``stop``, or below the only argument."""
        low, high = (0, start) if stop is None else (start, stop)
        return int(self._generator.integers(low, high))

    def randint(self, low: int, high: int) -> int:
        """Return an integer, both ends included."""
        return self.randrange(low, high + 1)

    def choice(self, values: Sequence[Value]) -> Value:
        return values[self.randrange(len(values))]

    def randbytes(self, num_bytes: int) -> bytes:
        return self._generator.bytes(num_bytes)

    def shuffle(self, values: list[Any]) -> None:
        """Put the values into another order."""
        order = self._generator.permutation(len(values))
        values[:] = [values[place] for place in order]


@dataclass(frozen=True, slots=True)
class Generator:
    """A source of inputs of one kind.

    ``run`` makes an input from random choices, gives it to tilewright in an empty folder, which is
    the working directory, and raises for a finding: a FindingError, or whatever comes through.
    """

    name: str
    what: str  # for people
    run: Callable[[Random, Path], None]
    ci_inputs: int  # inputs that `make test` tries: at most seven seconds of one core


def random_of(seed: int, name: str, index: int) -> Random:
    """Return the choices of one input."""
    return Random(np.random.default_rng([seed, crc32(name.encode()), index]))
