"""A launch as its programs share it: grid, terms, times of units, memories, effects, counters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod
from typing import Any, NamedTuple, overload

import numpy as np

from tilewright.device.build import Device
from tilewright.device.dma import Access
from tilewright.device.mmu import Walk
from tilewright.device.pe import Pe
from tilewright.engine.hub import Hub
from tilewright.engine.spec import EngineKind, Limits, limit_error
from tilewright.errors import KernelError
from tilewright.executor.effect import EffectLog, Storage
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.executor.stream import Stream
from tilewright.language.block_type import BlockType
from tilewright.language.kernel import Kernel
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import GemmCharge
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryPlace
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.memory.sanitizer.tensor import TensorBook
from tilewright.native import native_core


class Outcome(Enum):
    """What became of an access that compiled code was asked to issue."""

    ISSUED = 0  # of a load: it returns the block instead
    UNSUPPORTED = 1  # `executor.dma` issues it, or raises
    BATCH_FULL = 2  # hand the commands over, then ask again
    OFFSETS_PENDING = 3  # of a load: wait for the offsets, then ask again


_core = native_core()

if _core is not None:
    _core.adopt_executor({each.name: each for each in (*Access, *Outcome)} | {"Walk": Walk})


def compiled_front(kind: EngineKind) -> Any:
    """Return what issues commands on an engine; None on all but that of the compiled core."""
    return _core if kind is EngineKind.NATIVE else None


def build_effect_log(kind: EngineKind, memories: Sequence[Any]) -> EffectLog:
    """For programs on an engine; compiled code applies its captures and commits itself.

    Each of the memories has a ``storage``; they may become more.
    """
    front = compiled_front(kind)
    return EffectLog() if front is None else front.EffectLog(memories)


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory that accesses can end in."""

    place: MemoryPlace
    storage: Storage


@dataclass(eq=False, slots=True)
class Replicated:
    """The virtual bytes of a tensor that has several copies: one PE may store there."""

    low: int
    high: int
    tensor: str
    stored_by: PeCoord | None = None
    storer: str = ""  # the program that did, for messages


@dataclass(slots=True)
class Counters:
    """What the programs of a run did."""

    commands: int = 0
    loads: int = 0
    stores: int = 0
    atomics: int = 0
    gathers: int = 0  # accesses whose addresses had to be computed first
    loaded_bytes: int = 0
    stored_bytes: int = 0
    spilled_bytes: int = 0


COUNTED = ("loads", "stores", "gathers", "loaded_bytes", "stored_bytes")
"""What compiled code counts, in the order in which it tells."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An op on operands of given types: what it gives and how long which unit works on it."""

    types: tuple[BlockType, ...]
    run: Callable[..., Any]
    vector_ps: int  # on the vector unit; none on both: the result is a view of the operand
    gemm_ps: int  # before that, on the GEMM unit
    transposes: bool = False  # issued when somebody but a product needs the result
    num_factors: int = 0  # the first operands, if they are read as they lie, transposed or not
    number: int = -1  # every issuer of the run knows it by that
    num_bytes: int = field(init=False)
    is_view: bool = field(init=False)
    has_floats: bool = field(init=False)

    def __post_init__(self) -> None:
        num_bytes = sum(kind.num_bytes for kind in self.types)
        object.__setattr__(self, "num_bytes", num_bytes)
        object.__setattr__(self, "is_view", not self.vector_ps and not self.gemm_ps)
        has_floats = any(kind.dtype.is_floating() for kind in self.types)
        object.__setattr__(self, "has_floats", has_floats)


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all programs of a launch."""

    kernel: Kernel
    grid: tuple[int, ...]
    carries_data: bool = True
    """False where only time is asked for: then floats have no values."""
    neighbours: Neighbours | None = None
    post: Post | None = None
    """Rings that were installed before, in the place of neighbours."""
    installed: Mapping[PeCoord, Post] = field(default_factory=dict)
    """Rings that programs of a PE use if the launch has neither of these."""
    resident: int = 1
    """Programs of a PE that run at a time: each has its part of registers and TCM."""
    replicas: Sequence[Replicated] = ()
    observer: Any = None
    """Watches what programs issue, if somebody does."""
    sanitizer: Sanitizer | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(eq=False)
class Run:
    """What all programs of one launch share."""

    device: Device
    hub: Hub
    memories: Sequence[Memory]
    effects: EffectLog
    tensors: Callable[[], TensorBook]  # makes a book of those that live, for the text of an error
    terms: Terms
    counters: Counters = field(default_factory=Counters)
    array_functions: dict[Callable[..., Any], Callable[..., Any]] = field(default_factory=dict)
    post: Post | None = None  # the rings of the launch, if its programs have neighbours
    installed: Mapping[PeCoord, Post] = field(default_factory=dict)  # rings of PEs, if not
    sanitizer: Any = None  # a LaunchWatch, if somebody looks for wrong accesses
    owners: dict[int, PeCoord] = field(default_factory=dict)  # by number of the hub's programs
    streams: list[Stream] = field(default_factory=list)  # of all PEs, before a program runs
    plans: dict[tuple[str, tuple[BlockType, ...], tuple[Any, ...]], Plan] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.storages = [memory.storage for memory in self.memories]
        self.front = compiled_front(self.device.engine.kind)
        self.shelf: Any = None
        if self.front is not None:
            copies = [(copy.low, copy.high) for copy in self.terms.replicas]
            self.shelf = self.front.PlanShelf(self.plans, self.terms.carries_data, copies)

    def count_accesses(self) -> None:
        """What compiled code has counted since the last time joins the counters."""
        if self.shelf is None:
            return
        for name, count in zip(COUNTED, self.shelf.take_counts(), strict=True):
            setattr(self.counters, name, getattr(self.counters, name) + count)

    def plan(
        self, pe: Pe, op: str, types: tuple[BlockType, ...], attributes: tuple[Any, ...]
    ) -> Plan:
        """All PEs have the same units, so a plan is made once."""
        bound = MEANINGS[op].bind(types, attributes)
        results = bound.type if isinstance(bound.type, tuple) else (bound.type,)
        vector_ps = gemm_ps = 0
        for charge in bound.charges:
            dtype = charge.dtype.device_name
            if isinstance(charge, GemmCharge):
                gemm_ps += charge.batch * pe.gemm.hold_ps(charge.m, charge.n, charge.k, dtype)
            else:
                vector_ps += charge.times * pe.vector.hold_ps(charge.op, charge.elements, dtype)
        lies = bound.transposes, bound.num_factors
        return self.add_plan(Plan(results, bound.run, vector_ps, gemm_ps, *lies))

    def add_plan(self, plan: Plan) -> Plan:
        """Tell it to every issuer."""
        if plan.is_view:
            return plan
        numbers = set()
        for stream in self.streams:
            steps = [stream.pe.vector_route, plan.vector_ps]
            if plan.gemm_ps:
                steps = [stream.pe.gemm_route, plan.gemm_ps, *steps]
            else:
                steps += [stream.pe.vector_route, 0]
            numbers.add(stream.issuer.add_plan([*steps, plan.num_bytes]))
        (number,) = numbers
        return replace(plan, number=number)


MAX_GRID_AXES = 3


@dataclass(frozen=True, slots=True)
class ProgramIds(Sequence[tuple[int, ...]]):
    """The ids of some programs of a grid, by their numbers; the first axis counts fastest.

    An id is computed when it is asked for: a grid of millions of programs takes no space.

    >>> list(ProgramIds((3, 2), range(1, 6, 2)))
    [(1, 0), (0, 1), (2, 1)]
    """

    grid: tuple[int, ...]
    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> "ProgramIds": ...
    def __getitem__(self, index: int | slice) -> "tuple[int, ...] | ProgramIds":
        if isinstance(index, slice):
            return ProgramIds(self.grid, self.numbers[index])
        ids = []
        number = self.numbers[index]
        for extent in self.grid:
            number, place = divmod(number, extent)
            ids.append(place)
        return tuple(ids)


class ProgramTitle(NamedTuple):
    """What messages call a program, also when its PE has gone on to the next one."""

    ids: tuple[int, ...]
    kernel: str
    pe: str

    def __str__(self) -> str:
        return f"program {self.ids} of {self.kernel} on {self.pe}"


def dealt(grid: tuple[int, ...], num_pes: int) -> list[ProgramIds]:
    """The ids of all programs of a grid, dealt to PEs in turn; the first axis counts fastest.

    >>> [list(ids) for ids in dealt((3, 2), 2)]
    [[(0, 0), (2, 0), (1, 1)], [(1, 0), (0, 1), (2, 1)]]
    """
    return [ProgramIds(grid, range(turn, prod(grid), num_pes)) for turn in range(num_pes)]


def checked_grid(kernel: Kernel, grid: Any, limits: Limits) -> tuple[int, ...]:
    """Return the extents of a grid; refuse one of other values or of too many programs."""
    extents = tuple(grid) if isinstance(grid, list | tuple) else (grid,)
    is_grid = 1 <= len(extents) <= MAX_GRID_AXES and all(
        isinstance(extent, int | np.integer) and not isinstance(extent, bool) and extent >= 0
        for extent in extents
    )
    if not is_grid:
        expected = f"1 to {MAX_GRID_AXES} integers of at least 0"
        found = f"the grid {grid!r}"
        raise KernelError(f"kernel {kernel.name!r}", found, expected, "correct the grid")
    sizes = tuple(map(int, extents))
    if prod(sizes) > limits.programs:
        where, found = f"kernel {kernel.name!r}", f"a grid {sizes} of {prod(sizes)} programs"
        raise limit_error(where, found, "programs", limits.programs)
    return sizes
