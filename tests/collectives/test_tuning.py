import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.option import RingOptions
from tilewright.collectives.plan import Plan
from tilewright.collectives.table import ALGORITHMS, checked_plan
from tilewright.collectives.tuning import TuningSpec, tune
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.machine.spec import TcmSpec

TCM = TcmSpec()
KIB = 1024


def plan_of(name: str, ranks: int) -> Plan:
    return checked_plan(ALGORITHMS[name], Call(Operation.ALL_REDUCE, ranks), 0).plan


RING_OF_16 = plan_of("ring", 16)


def test_a_block_that_outlasts_its_way_is_cut_in_two_and_a_shorter_one_in_three() -> None:
    long, short = (
        tune(TuningSpec(), RING_OF_16, 512 * KIB, flight_bytes, TCM).chunk_bytes
        for flight_bytes in (16 * KIB, 16 * KIB + 1)
    )
    assert (long, short) == (16 * KIB, -(-32 * KIB // 3))


@pytest.mark.parametrize(
    ("shard_bytes", "slot_bytes"),
    [(64, 16), (4096, 256), (2**16, 4096), (2**17, 4096), (2**20, 8192), (2**26, 8192)],
)
def test_slots_take_a_whole_short_message_or_a_quarter_of_a_long_one(
    shard_bytes: int, slot_bytes: int
) -> None:
    assert tune(TuningSpec(), RING_OF_16, shard_bytes, 1024, TCM).ring.slot_bytes == slot_bytes


def test_a_small_call_has_four_slots_as_large_as_their_tokens() -> None:
    assert tune(TuningSpec(), RING_OF_16, 64, 4, TCM).ring == RingSpec(slot_bytes=16)


def test_slots_of_an_uneven_call_take_any_message_up_to_a_chunk() -> None:
    tuning = tune(TuningSpec(), RING_OF_16, 64, 4, TCM, is_uneven=True)
    assert tuning.ring.slot_bytes == tuning.chunk_bytes == 4 * KIB


@given(st.sampled_from(sorted(ALGORITHMS)), st.integers(1, 2**18), st.integers(0, 2**21))
def test_a_call_has_no_slot_that_none_of_its_messages_uses(
    name: str, shard_bytes: int, flight_bytes: int
) -> None:
    plan = plan_of(name, 12)
    tuning = tune(TuningSpec(), plan, shard_bytes, flight_bytes, TCM)
    block_bytes = -(-shard_bytes // plan.num_blocks)
    sizes = [min(tuning.chunk_bytes, block_bytes - at)
             for at in range(0, block_bytes, tuning.chunk_bytes)]  # fmt: skip
    fragments = [part for size in sizes for part in tuning.ring.fragments(size)]
    assert tuning.ring.slot_bytes <= max(16, 2 * max(fragments) - 1)
    assert tuning.ring.slots <= max(4, plan.most_sends * len(fragments))


@pytest.mark.parametrize("name", ["double_tree", "torus_2d", "halving_doubling"])
def test_a_ring_has_room_for_all_short_blocks_of_a_turn_until_the_way_is_full(name: str) -> None:
    """A peer that sends several blocks in a turn does not wait for credits between them."""
    plan = plan_of(name, 12)
    assert plan.blocks_per_turn > 1
    block_bytes = 48 * KIB // plan.num_blocks
    far = tune(TuningSpec(), plan, 48 * KIB, 2**20, TCM).ring
    assert far.slots == plan.most_sends * len(far.fragments(block_bytes))
    near, far = (
        tune(TuningSpec(), plan, 192 * KIB, flight_bytes, TCM).ring
        for flight_bytes in (1 * KIB, 2**20)
    )
    assert near.slots < far.slots


@pytest.mark.parametrize("root", [0, 5])
def test_the_rank_that_talks_to_all_others_has_room_for_its_rings(root: int) -> None:
    call = Call(Operation.BROADCAST, 16, root=root)
    plan = checked_plan(ALGORITHMS["direct"], call, 0).plan
    ring = tune(TuningSpec(), plan, 2**24, 2**22, TCM).ring
    assert len(plan.peers(root)) * ring.num_bytes <= TCM.reserved_bytes // 2


def test_what_is_said_of_rings_is_taken_whatever_the_size() -> None:
    said = TuningSpec(RingOptions(RingKind.SRAM, n_slots=3, slot_size=100))
    for shard_bytes in (1, 2**24):
        ring = tune(said, RING_OF_16, shard_bytes, 2**20, TCM).ring
        assert (ring.kind, ring.slots, ring.slot_bytes) == (RingKind.SRAM, 3, 100)


@example("direct", 16, 2**26, 2**21)
@given(
    st.sampled_from(["ring", "direct", "double_tree"]),
    st.integers(2, 16),
    st.integers(0, 2**26),
    st.integers(0, 2**21),
)
def test_two_sets_of_rings_fit_the_tcm_and_hold_two_fragments(
    name: str, ranks: int, shard_bytes: int, flight_bytes: int
) -> None:
    plan = plan_of(name, ranks)
    tuning = tune(TuningSpec(), plan, shard_bytes, flight_bytes, TCM)
    assert 2 * len(plan.peers(0)) * tuning.ring.num_bytes <= TCM.reserved_bytes
    assert tuning.ring.slots >= 2
    assert tuning.chunk_bytes <= max(65_536, flight_bytes // 2)


def test_slots_take_what_is_under_way_and_one_chunk_more() -> None:
    """A chunk of 32 KiB, in slots of a quarter of it, travels while another is read."""
    ring = tune(TuningSpec(), RING_OF_16, 2**20, 32 * KIB, TCM).ring
    assert (ring.slot_bytes, ring.slots) == (8 * KIB, 2 * 4)


@pytest.mark.parametrize(("name", "lead"), [("ring", 1), ("double_tree", 2)])
def test_ranks_that_wait_for_their_turns_are_a_chunk_further_ahead(name: str, lead: int) -> None:
    assert tune(TuningSpec(), plan_of(name, 8), 64 * KIB, 0, TCM).lead == lead


def test_a_short_block_is_cut_in_three_however_near_its_peer_is() -> None:
    """Two chunks of two fragments each would fill the four slots of a ring."""
    torus = plan_of("torus_2d", 6)
    assert tune(TuningSpec(), torus, 64 * KIB, 1, TCM).chunk_bytes == 4096
