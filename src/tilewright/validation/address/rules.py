"""What an address means: the bytes that a placement gives a PE, and no others. AD1 to AD5.

Who has which byte of a tensor is worked out from the words of its policy alone, with NumPy: levels
are divided by ``np.array_split``, and parts lie one after the other in the order of their PEs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import AddressError
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.runtime.launch.bind import PerPe
from tilewright.runtime.placement.policy import DPPolicy, Interleave
from tilewright.validation.address.access import MISTAKES, RIGHT, WAYS, Pointing, run_way
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, exact

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


SEED = 19
NUM_CASES = 24
WAY_PAGE_BYTES = 1024  # with two shards of a way in one page
BEYOND = 8  # bytes behind the last page that are tried too


@dataclass(frozen=True, slots=True)
class Probe:
    """What happened to a load of every single byte by every PE that has a part of a tensor."""

    expected: Expected
    pairs: list[tuple[frozenset[int], dict[int, int]]]
    """For each PE the bytes that it may access, and the value by offset of those that it could."""


def small_machine(page_bytes: int = PAGE_BYTES) -> Machine:
    """Return a machine of two SIPs, with pages so small that every byte of some can be tried."""
    return machine_named("ahbm-small", f"pe.mmu.page_bytes={page_bytes} B", "sip.count=2")


def probe_case(case: Case, kind: EngineKind, seed: int = SEED) -> Probe:
    """Place a tensor and load every byte of its pages, and some behind them, on every PE."""
    torch = RuntimeContext(small_machine(), engine=kind)
    tensor = torch.empty(case.shape, case.dtype, dp=case.policy, name="x")
    numbers = np.random.default_rng(seed).integers(-8, 8, case.shape)
    values = numbers.astype(tensor.dtype.storage)
    tensor.copy_(values, timed=False)
    expected = case.expect(values)
    places = sorted(expected.visible)
    accepted: list[dict[int, int]] = [{} for _ in places]

    def kernel(base: Any, number: Any, num_bytes: Any) -> None:
        blocks = {}
        for offset in range(num_bytes):
            pointer = tl.cast(base + offset, tl.pointer_type(tl.uint8))
            try:
                blocks[offset] = tl.load(pointer)
            except AddressError:
                continue
        for offset, block in blocks.items():
            accepted[number][offset] = int(block)

    num_bytes = -(-len(expected.image) // PAGE_BYTES) * PAGE_BYTES + BEYOND
    numbers_of = PerPe({place: number for number, place in enumerate(places)})
    torch.launch(kernel, tensor.address, numbers_of, num_bytes, on=places)
    return Probe(expected, [(expected.visible[at], accepted[n]) for n, at in enumerate(places)])


@cache
def _probes(kind: EngineKind) -> list[Probe]:
    return [probe_case(case, kind) for case in draw_cases(SEED, NUM_CASES)]


def check_accepted(kind: EngineKind) -> Finding:
    """AD1: of the bytes that a PE has by the words of the policy, those that it can load."""
    pairs = [pair for probe in _probes(kind) for pair in probe.pairs]
    found = sum(len(may & set(could)) for may, could in pairs)
    return exact(sum(len(may) for may, _ in pairs), found, "bytes")


def check_no_others(kind: EngineKind) -> Finding:
    """AD1: of all other bytes of the same pages, those that it can load."""
    pairs = [pair for probe in _probes(kind) for pair in probe.pairs]
    return exact(0, sum(len(set(could) - may) for may, could in pairs), "bytes")


def check_values(kind: EngineKind) -> Finding:
    """AD2: loaded bytes that hold something else than the same address does for all others."""
    found = sum(
        probe.expected.image[offset] != value
        for probe in _probes(kind)
        for _, could in probe.pairs
        for offset, value in could.items()
    )
    return exact(0, found, "bytes")


def _is_refused(way: str, pointing: Pointing, kind: EngineKind) -> bool:
    try:
        run_way(way, pointing, small_machine(WAY_PAGE_BYTES), kind)
    except AddressError:
        return True
    return False


def check_refused(kind: EngineKind, *, mistake: str) -> Finding:
    """AD3: a mistake in every way of access: how many are refused."""
    found = sum(_is_refused(way, MISTAKES[mistake], kind) for way in WAYS)
    return exact(len(WAYS), found, "programs")


def check_right(kind: EngineKind) -> Finding:
    """AD4: the same ways, pointed at what the PE has: how many change that and nothing else."""
    machine = small_machine(WAY_PAGE_BYTES)
    found = sum(run_way(way, right, machine, kind)[0] for way in WAYS for right in RIGHT)
    return exact(len(WAYS) * len(RIGHT), found, "programs")


def check_times(kind: EngineKind) -> Finding:
    """AD5: their times, beside the times if whole pages are mapped."""
    machine = small_machine(WAY_PAGE_BYTES)
    by_bytes, by_pages = (
        sum(
            run_way(way, right, machine, kind, by_pages=by_pages)[1].latency_ps
            for way in WAYS
            for right in RIGHT
        )
        for by_pages in (False, True)
    )
    return exact(by_pages, by_bytes, "ps")


def oracles() -> Iterator[Row]:
    tried = f"{NUM_CASES} random placements"
    yield f"AD1 bytes that PEs have, loaded, {tried}", check_accepted
    yield f"AD1 other bytes of their pages, loaded, {tried}", check_no_others
    yield f"AD2 loaded bytes of another value, {tried}", check_values
    for mistake in MISTAKES:
        name = f"AD3 {mistake}: {len(WAYS)} ways of access refused"
        yield name, partial(check_refused, mistake=mistake)
    yield "AD4 the same ways inside a PE's bytes: right", check_right
    yield "AD5 their time, as with whole pages mapped", check_times
