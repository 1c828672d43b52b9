"""Chunks, rounds and slots of a collective: as files, groups and calls say them, then as decided.

Keys are those of ``ccl.yaml``. What nobody says is chosen for the call: slots that take its
messages, as many as are under way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, TypedDict, TypeVar

from tilewright.collectives.plan import Plan
from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.errors import CollectiveError
from tilewright.machine.spec import TcmSpec

Choice = TypeVar("Choice", bound=Enum)


class RingKeys(TypedDict, total=False):
    """Keywords of functions that install or use rings."""

    buffer_kind: RingKind | str
    backpressure: Backpressure | str
    n_slots: int
    slot_size: int
    ipcq_credit_size_bytes: int


class CallKeys(RingKeys, total=False):
    """Keywords of a collective."""

    algorithm: str


@dataclass(frozen=True, slots=True)
class RingOptions:
    """None: not said here."""

    buffer_kind: RingKind | None = None
    backpressure: Backpressure | None = None
    n_slots: int | None = None
    slot_size: int | None = None
    ipcq_credit_size_bytes: int | None = None

    def over(self, base: "RingOptions") -> "RingOptions":
        """What is said here, and else there.

        >>> RingOptions(n_slots=8).over(RingOptions(n_slots=2, slot_size=512)).slot_size
        512
        """
        return replace(base, **self.said)

    @property
    def said(self) -> dict[str, Any]:
        """What is said here, by key."""
        values = {name: getattr(self, name) for name in RING_KEYS}
        return {name: value for name, value in values.items() if value is not None}

    def spec(self, least: RingSpec | None = None) -> RingSpec:
        """Rings as they are said, and else as ``least`` has them."""
        base = least or RingSpec()
        return RingSpec(
            self.buffer_kind or base.kind,
            self.n_slots or base.slots,
            self.slot_size or base.slot_bytes,
            self.backpressure or base.backpressure,
            self.ipcq_credit_size_bytes or base.token_bytes,
        )


NOTHING_SAID = RingOptions()
RING_KEYS = tuple(each.name for each in fields(RingOptions))
CHOICES: Mapping[str, type[Enum]] = MappingProxyType(
    {"buffer_kind": RingKind, "backpressure": Backpressure}
)
"""Keys whose values are words."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What one call says; all its ranks must say the same."""

    algorithm: str | None = None
    ring: RingOptions = NOTHING_SAID

    def __str__(self) -> str:
        said = {"algorithm": self.algorithm, **self.ring.said}
        return ", ".join(
            f"{name}={getattr(value, 'value', value)}" for name, value in said.items() if value
        )


NO_OPTIONS = CallOptions()


def parse_call(where: str, said: Mapping[str, Any]) -> CallOptions:
    """Keywords of a call; what is not a key or not one of its values is refused."""
    ring = {name: value for name, value in said.items() if name != "algorithm"}
    return CallOptions(said.get("algorithm"), parse_ring(where, ring, ("algorithm", *RING_KEYS)))


def parse_ring(
    where: str, said: Mapping[str, Any], known: tuple[str, ...] = RING_KEYS
) -> RingOptions:
    """Keywords of rings; None is as if the key were left out."""
    for name in said:
        if name not in RING_KEYS:
            expected = f"one of {', '.join(known)}"
            raise CollectiveError(where, f"the option {name!r}", expected, "correct or remove it")
    values: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    for name, value in values.items():
        if name in CHOICES:
            values[name] = parse_choice(where, f"{name}={value!r}", CHOICES[name], value)
        elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
            expected = "a whole number from 1 up"
            raise CollectiveError(where, f"{name}={value!r}", expected, "correct it")
    return RingOptions(**values)


def parse_choice(where: str, found: str, kind: type[Choice], said: object) -> Choice:
    """Read a word of a kind; raise CollectiveError for any other, which is told as ``found``."""
    words = [each.value for each in kind]
    if isinstance(said, kind):
        return said
    if said not in words:
        raise CollectiveError(where, found, f"one of {', '.join(words)}", "name one of these")
    return kind(said)


LEAST_CHUNK_BYTES = 4_096  # below that, commands and tokens cost more than they hide
LONG_BLOCK_BYTES = 32_768
LEAST_SLOTS = 2  # one is read while another is filled
FRAGMENTS = 4  # of a chunk: what has come is read while the rest travels
ROUNDS_IN_TCM = 12  # held, arriving from several ranks and turns, combined, on their way out
RING_SETS = 2  # that the reserved TCM has room for, at least
AHEAD_BYTES = 65_536  # of chains and trees: some lanes are served first and run ahead of others


@dataclass(frozen=True, slots=True)
class TuningSpec:
    """Limits that a call of any size stays within."""

    ring: RingOptions = NOTHING_SAID
    chunk_bytes: int = 65_536  # the most of a message, or half of what is under way
    chunks_per_block: int = 3  # at most: some travel while others are sent
    round_bytes: int = 2**20  # that a program holds at a time


@dataclass(frozen=True, slots=True)
class Tuning:
    """What one call runs with."""

    ring: RingSpec = field(default_factory=RingSpec)
    chunk_bytes: int = 16_384  # the most of a message
    round_bytes: int = 2**20
    lead: int = 1  # chunks that are sent while one travels
    copy_ring: RingSpec = field(default_factory=RingSpec)  # of results on their way to copies


def tune(
    asked: TuningSpec,
    plan: Plan,
    shard_bytes: int,
    flight_bytes: int,
    tcm: TcmSpec,
    *,
    is_uneven: bool = False,
) -> Tuning:
    """Choose chunks that let a block overlap with itself, and slots for what is under way.

    ``flight_bytes`` are a lane's on the longest way of the plan, there and back. ``is_uneven``: any
    message may be as long as a chunk, whatever the mean is.
    """
    room_bytes = (tcm.capacity_bytes - tcm.reserved_bytes) // ROUNDS_IN_TCM
    round_bytes = max(1, min(asked.round_bytes, room_bytes))
    block_bytes = -(-min(shard_bytes, round_bytes) // max(1, plan.num_blocks))
    # half of it lasts longer than a message travels, and is not read in a few fragments
    is_long = block_bytes >= max(2 * flight_bytes, LONG_BLOCK_BYTES)
    num_chunks = min(2, asked.chunks_per_block) if is_long else asked.chunks_per_block
    chunk_bytes = min(
        max(asked.chunk_bytes, flight_bytes // 2),
        max(LEAST_CHUNK_BYTES, -(-block_bytes // num_chunks)),
    )
    sent_bytes = max(1, min(chunk_bytes, block_bytes))
    lead = flight_bytes // (4 * sent_bytes) + 1 + plan.is_staggered
    sendable = plan.num_turns * plan.blocks_per_turn * block_bytes
    under_way = min(max(flight_bytes, AHEAD_BYTES * plan.is_staggered), sendable)
    ring_bytes = tcm.reserved_bytes // (RING_SETS * max(1, plan.most_peers))
    copy_ring = _ring(asked.ring, sent_bytes, under_way, ring_bytes)
    num_rounds = -(-shard_bytes // round_bytes)
    num_messages = num_rounds * plan.most_sends * -(-block_bytes // chunk_bytes)
    ring = copy_ring if is_uneven else _fitted(asked.ring, copy_ring, sent_bytes, num_messages)
    return Tuning(ring, chunk_bytes, round_bytes, lead, copy_ring)


def _fitted(said: RingOptions, ring: RingSpec, sent_bytes: int, num_messages: int) -> RingSpec:
    """Shrink slots that are larger than messages, and leave out slots that no message uses.

    Slots are powers of two, and not smaller than the token that announces them. There are not
    fewer than by default, so that calls that follow one another overlap.
    """
    whole_bytes = max(ring.token_bytes, _power_up(sent_bytes))
    slot_bytes = said.slot_size or min(ring.slot_bytes, whole_bytes)
    num_fragments = num_messages * -(-sent_bytes // slot_bytes)
    slots = said.n_slots or min(ring.slots, max(RingSpec().slots, num_fragments))
    return replace(ring, slots=slots, slot_bytes=slot_bytes)


def _ring(said: RingOptions, chunk_bytes: int, under_way: int, room_bytes: int) -> RingSpec:
    """Choose slots for what is under way, and for a chunk, which waits for room for all of it.

    No more than leaves room for the rings of another algorithm. Sizes are few, powers of two: rings
    are kept from call to call. Slots of the default size are cut where the room is less than a
    default ring.
    """
    least = said.spec()
    most_bytes = max(least.token_bytes, 1 << (max(1, room_bytes // LEAST_SLOTS).bit_length() - 1))
    slot_bytes = said.slot_size or max(
        min(least.slot_bytes, most_bytes),
        min(_power_up(-(-chunk_bytes // FRAGMENTS)), most_bytes),
    )
    fragments = -(-chunk_bytes // slot_bytes)  # each in a slot of its own
    num_chunks = -(-under_way // chunk_bytes) + 1
    slots = said.n_slots or max(
        LEAST_SLOTS,
        min(least.num_bytes, room_bytes) // slot_bytes,
        min(_power_up(num_chunks * fragments), room_bytes // slot_bytes),
    )
    return replace(least, slots=slots, slot_bytes=slot_bytes)


def _power_up(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()
