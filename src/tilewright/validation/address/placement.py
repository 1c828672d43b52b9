"""Who has which byte of a tensor, from the words of its policy alone, with NumPy.

Nothing of the runtime is asked: levels are divided by ``np.array_split``, and parts lie one after
the other in the order of the PEs that have them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilewright.machine.coords import PeCoord
from tilewright.runtime.placement.policy import DPPolicy, Interleave

PAGE_BYTES = 512
BITS = {"i4": 4, "i8": 8, "f16": 16, "f32": 32}
WORDS = ("replicate", "row_wise", "column_wise")
COUNTS = (2, 2, 2)  # at most so many SIPs, cubes and PEs
MAX_ELEMENTS = 200

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a placement has to be: which bytes a PE may access, and what they hold."""

    visible: dict[PeCoord, frozenset[int]]  # offsets in the virtual range, by PE with a part
    image: bytes  # of the virtual range


@dataclass(frozen=True, slots=True)
class Case:
    """A tensor, and how it is divided: a word or blocks of bytes for each level, with a count."""

    shape: tuple[int, ...]
    dtype: str
    words: tuple[str, str, str]
    counts: tuple[int, int, int]
    is_interleaved: bool = False  # in the last level, in place of its word

    @property
    def policy(self) -> DPPolicy:
        sip, cube, pe = self.words
        last = Interleave(PAGE_BYTES) if self.is_interleaved else pe
        sips, cubes, pes = self.counts
        return DPPolicy(sip=sip, cube=cube, pe=last, num_sips=sips, num_cubes=cubes, num_pes=pes)

    def expect(self, values: Array) -> Expected:
        """Return what holds for a tensor of these values."""
        bits = BITS[self.dtype]
        offsets: dict[bytes, int] = {}  # of parts, by their elements
        image = b""
        own: dict[PeCoord, set[int]] = {}
        borders = set[int]()
        for place, elements, unit in self._regions():
            if not elements.size:
                continue
            key = elements.tobytes()
            if key not in offsets:
                offsets[key] = len(image)
                image += _packed(values.reshape(-1)[elements], self.dtype)
            num_bytes = -(-elements.size * bits // 8)
            inside = np.arange(num_bytes)
            if self.is_interleaved:
                inside = inside[inside // PAGE_BYTES % self.counts[2] == unit]
            if inside.size:
                own[place] = set((offsets[key] + inside).tolist())
                ends = np.flatnonzero(np.diff(inside) != 1)
                borders |= {offsets[key] + int(at) for at in (inside[0], inside[-1] + 1)}
                borders |= {offsets[key] + int(inside[at]) + 1 for at in ends}
                borders |= {offsets[key] + int(inside[at + 1]) for at in ends}
        order = np.concatenate([np.frombuffer(key, np.int64) for key in offsets])
        is_row_major = np.array_equal(order, np.arange(order.size))
        if is_row_major and not any(at % PAGE_BYTES for at in borders - {len(image)}):
            own = {place: set(range(len(image))) for place in own}
        return Expected({place: frozenset(found) for place, found in own.items()}, image)

    def _regions(self) -> Iterator[tuple[PeCoord, Array, int]]:
        """The numbers of the elements that each PE has, and the PE's number in its level."""
        matrix = (1,) * (2 - len(self.shape)) + self.shape
        regions = [np.arange(prod(self.shape), dtype=np.int64).reshape(matrix)]
        words = (*self.words[:2], "replicate" if self.is_interleaved else self.words[2])
        for word, count in zip(words, self.counts, strict=True):
            regions = [part for region in regions for part in _divided(region, word, count)]
        places = product(*map(range, self.counts))
        for place, region in zip(places, regions, strict=True):
            yield PeCoord(*place), np.ascontiguousarray(region).reshape(-1), place[2]


def _divided(region: Array, word: str, count: int) -> list[Array]:
    if word == "replicate":
        return [region] * count
    return np.array_split(region, count, axis=0 if word == "row_wise" else -1)


def _packed(elements: Array, dtype: str) -> bytes:
    if dtype != "i4":
        return elements.tobytes()
    halves = elements.astype(np.uint8) & 15
    if halves.size % 2:
        halves = np.append(halves, np.uint8(0))
    return (halves[::2] | halves[1::2] << 4).astype(np.uint8).tobytes()


def draw_cases(seed: int, count: int) -> list[Case]:
    """Return random tensors, some of them in whole pages."""
    generator = np.random.default_rng(seed)
    cases = []
    for number in range(count):
        rank = int(generator.integers(1, 4))
        largest = int(MAX_ELEMENTS ** (1 / rank))
        shape = tuple(int(size) for size in generator.integers(1, largest + 1, rank))
        if number % 3 == 0:  # rows of whole pages, which every PE sees if they alone are divided
            shape = (int(generator.integers(1, 3)), PAGE_BYTES // 2)
        is_interleaved = number % 4 == 1
        if is_interleaved:  # several blocks for each PE, from any byte on
            shape = (*(int(size) for size in generator.integers((2, 40), (4, 70), 2)), 3)
        words = tuple(WORDS[int(word)] for word in generator.integers(0, 3, 3))
        counts = tuple(int(generator.integers(1, most + 1)) for most in COUNTS)
        dtype = list(BITS)[int(generator.integers(0, 4))]
        cases.append(Case(shape, dtype, words, counts, is_interleaved))  # type: ignore[arg-type]
    return cases
