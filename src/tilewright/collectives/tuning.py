"""How a collective uses the machine: chunks, rounds and slots, as asked for and as decided."""

from dataclasses import dataclass, field, replace

from tilewright.collectives.option import NOTHING_SAID, RingOptions
from tilewright.collectives.plan import Plan
from tilewright.device.ipcq import RingSpec
from tilewright.machine.spec import TcmSpec

__all__ = ("Tuning", "TuningSpec", "tune")

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


def tune(
    asked: TuningSpec, plan: Plan, shard_bytes: int, flight_bytes: int, tcm: TcmSpec
) -> Tuning:
    """Chunks that let a block overlap with itself, slots for what is under way meanwhile.

    ``flight_bytes`` are a lane's on the longest way of the plan, there and back.
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
    ring = _ring(asked.ring, sent_bytes, under_way, ring_bytes)
    return Tuning(ring, chunk_bytes, round_bytes, lead)


def _ring(said: RingOptions, chunk_bytes: int, under_way: int, room_bytes: int) -> RingSpec:
    """Slots for what is under way, and for a chunk, which waits for room for all of it at once; no
    more than leaves room for the rings of another algorithm.

    Few sizes, powers of two: rings are kept from call to call.
    """
    least = said.spec()
    slot_bytes = said.slot_size or max(
        least.slot_bytes,
        min(_power_up(-(-chunk_bytes // FRAGMENTS)), _power_down(room_bytes // LEAST_SLOTS)),
    )
    fragments = -(-chunk_bytes // slot_bytes)  # each in a slot of its own
    num_chunks = -(-under_way // chunk_bytes) + 1
    slots = said.n_slots or max(
        LEAST_SLOTS,
        least.num_bytes // slot_bytes,
        min(_power_up(num_chunks * fragments), room_bytes // slot_bytes),
    )
    return replace(least, slots=slots, slot_bytes=slot_bytes)


def _power_up(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def _power_down(number: int) -> int:
    return 1 << (max(1, number).bit_length() - 1)
