"""What an address means: the bytes that a placement gives a PE, and no others. AD1 to AD5."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import AddressError
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.runtime.launch.bind import PerPe
from tilewright.validation.address.access import MISTAKES, RIGHT, WAYS, Pointing, run_way
from tilewright.validation.address.placement import (
    PAGE_BYTES,
    Case,
    Expected,
    draw_cases,
)
from tilewright.validation.finding import Finding, Row, exact

SEED = 19
NUM_CASES = 24
WAY_PAGE_BYTES = 1024  # with two shards of a way in one page
BEYOND = 8  # bytes behind the last page that are tried too


@dataclass(frozen=True, slots=True)
class Probe:
    """What happened to a load of every single byte by every PE that has a part of a tensor."""

    expected: Expected
    accepted: tuple[dict[int, int], ...]  # by PE: the value of each byte by its offset

    @property
    def pairs(self) -> list[tuple[frozenset[int], dict[int, int]]]:
        """For each PE the bytes that it may access, and those that it could."""
        places = sorted(self.expected.visible)
        return [
            (self.expected.visible[place], found)
            for place, found in zip(places, self.accepted, strict=True)
        ]


@cache
def small_machine(page_bytes: int = PAGE_BYTES) -> Machine:
    """Return a machine of two SIPs, with pages so small that every byte of some can be tried."""
    return build_machine(
        parse_machine("ahbm-small", [f"pe.mmu.page_bytes={page_bytes} B", "sip.count=2"])
    )


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
    return Probe(expected, tuple(accepted))


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
