"""What all programs of one run share: units' times, memories, effects, counters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from tilewright.device.build import Device
from tilewright.device.dma import Access
from tilewright.device.mmu import Walk
from tilewright.device.pe import Pe
from tilewright.engine.hub import Hub
from tilewright.engine.spec import EngineKind, Limits
from tilewright.executor.effect import EffectLog, Storage
from tilewright.executor.stream import Stream
from tilewright.language.block_type import BlockType
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import GemmCharge
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryPlace
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


@dataclass(eq=False)
class Run:
    """``carries_data`` is False where only time is asked for: then floats have no values."""

    device: Device
    hub: Hub
    memories: Sequence[Memory]
    effects: EffectLog
    functions: Mapping[str, Callable[..., Any]]  # of the language, for those that are methods too
    tensors: Callable[[], TensorBook]  # makes a book of those that live, for the text of an error
    carries_data: bool = True
    limits: Limits = field(default_factory=Limits)
    counters: Counters = field(default_factory=Counters)
    array_functions: dict[Callable[..., Any], Callable[..., Any]] = field(default_factory=dict)
    post: Any = None  # the rings of the launch, if its programs have neighbours
    installed: Mapping[PeCoord, Any] = field(default_factory=dict)  # rings of PEs, if not
    replicas: Sequence[Replicated] = ()
    observer: Any = None  # watches what programs issue, if somebody does
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
            copies = [(copy.low, copy.high) for copy in self.replicas]
            self.shelf = self.front.PlanShelf(self.plans, self.carries_data, copies)

    def rings_of(self, pe: PeCoord) -> Any:
        """Return the rings that programs on a PE use; None if there are none."""
        return self.installed.get(pe) if self.post is None else self.post

    @property
    def posts(self) -> tuple[Any, ...]:
        """All sets of rings that programs of the run may use, each once."""
        return tuple(dict.fromkeys(self.installed.values())) if self.post is None else (self.post,)

    def count_accesses(self) -> None:
        """What compiled code has counted since the last time joins the counters."""
        if self.shelf is None:
            return
        loads, stores, gathers, loaded_bytes, stored_bytes = self.shelf.take_counts()
        self.counters.loads += loads
        self.counters.stores += stores
        self.counters.gathers += gathers
        self.counters.loaded_bytes += loaded_bytes
        self.counters.stored_bytes += stored_bytes

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
        numbers = {stream.issuer.add_plan(_issued(plan, stream.pe)) for stream in self.streams}
        (number,) = numbers
        return replace(plan, number=number)

    def note_replica_store(self, program: Any, low: int, high: int) -> None:
        """Refuse a store into a second copy of a tensor: the copies would differ."""
        for replicated in self.replicas:
            if low >= replicated.high or high <= replicated.low:
                continue
            pe = program.stream.pe.coord
            if replicated.stored_by is None:
                replicated.stored_by, replicated.storer = pe, str(program)
            elif replicated.stored_by != pe:
                both = f"{replicated.storer} and {program}"
                found = f"stores into copies of tensor {replicated.tensor!r} by {both}"
                expected = "one program that stores into a tensor with copies"
                raise program.error(found, expected, "split the tensor, or store from one program")

    def round_trip(self, pe: PeCoord, memory: int, access: Access, channel: int) -> int:
        kind, home = self.memories[memory].place
        return self.device.pe_access(pe, home, access, channel, kind)


def _issued(plan: Plan, pe: Pe) -> list[int]:
    """The steps of a plan on the units of a PE."""
    vector = (pe.vector_route, plan.vector_ps)
    if not plan.gemm_ps:
        return [*vector, pe.vector_route, 0, plan.num_bytes]
    return [pe.gemm_route, plan.gemm_ps, *vector, plan.num_bytes]
