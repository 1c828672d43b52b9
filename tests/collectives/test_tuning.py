"""Keys of ``ccl.yaml`` as keywords of one call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan
from tilewright.collectives.tuning import RingOptions, TuningSpec, parse_call, parse_ring, tune
from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.errors import CollectiveError
from tilewright.host import RuntimeContext
from tilewright.machine.spec import TcmSpec

PLACES = [(0, 0, pe) for pe in range(3)]
Program = Callable[[int, Any, Any], None]


def run_ranks(program: Program, **options: Any) -> RuntimeContext:
    torch = RuntimeContext("ahbm-small")

    def worker(rank: int) -> None:
        torch.distributed.init_process_group(rank_to_pe=PLACES, **options)
        program(rank, torch, torch.distributed)

    torch.multiprocessing.spawn(worker, nprocs=len(PLACES))
    return torch


def rings_of(torch: RuntimeContext) -> list[RingSpec]:
    return [plan.neighbours.ring for plan in torch.distributed.book.plans]


def reduce_once(**said: Any) -> Program:
    def program(rank: int, torch: Any, dist: Any) -> None:
        tensor = torch.from_numpy(np.full(4000, rank, np.float32))
        dist.all_reduce(tensor, **said)
        assert tensor.tolist() == [3.0] * 4000

    return program


def test_a_call_says_its_rings_and_the_next_call_has_those_of_the_group_again() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        said = {"buffer_kind": "sram", "n_slots": 3, "slot_size": 512, "backpressure": "poll"}
        reduce_once(**said, ipcq_credit_size_bytes=32)(rank, torch, dist)
        reduce_once()(rank, torch, dist)

    first, second = rings_of(run_ranks(program, buffer_kind="hbm", algorithm="ring"))
    assert first == RingSpec(RingKind.SRAM, 3, 512, Backpressure.POLL, 32)
    assert (second.kind, second.backpressure) == (RingKind.HBM, Backpressure.SLEEP)


def test_a_call_names_its_algorithm() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        reduce_once(algorithm="double_tree")(rank, torch, dist)
        if rank == 0:
            names = [choice.algorithm.name for choice in dist._checked_world("test").choices]
            assert names == ["double_tree"]

    run_ranks(program, algorithm="ring")


@pytest.mark.parametrize(
    "smaller", [{"n_slots": 1, "slot_size": 1024}, {"slot_size": 64}, {"buffer_kind": "hbm"}]
)
def test_worse_rings_of_a_call_make_it_slower(smaller: dict[str, Any]) -> None:
    times = [run_ranks(reduce_once(**said), algorithm="ring").now_ps for said in ({}, smaller)]
    assert times[0] < times[1]


def test_what_is_said_goes_call_then_group_then_entry_then_defaults_of_a_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ccl.yaml"
    defaults = "defaults:\n  slot_size: 256\n  n_slots: 2\n  backpressure: poll\n"
    file.write_text(f"{defaults}algorithms:\n  ring:\n    slot_size: 512\n    n_slots: 5\n")
    torch = run_ranks(reduce_once(n_slots=7), ccl_yaml=file, slot_size=1024, algorithm="ring")
    (ring,) = rings_of(torch)
    assert (ring.slots, ring.slot_bytes, ring.backpressure) == (7, 1024, Backpressure.POLL)


def test_every_call_and_message_takes_the_keys() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        one = [torch.from_numpy(np.full(2, rank, np.float32)) for _ in range(3)]
        three = [torch.from_numpy(np.zeros(2, np.float32)) for _ in range(3)]
        pile, more = (torch.from_numpy(np.zeros(6, np.float32)) for _ in range(2))
        said = {"slot_size": 128}
        dist.all_gather(three, one[0], **said)
        dist.all_gather_into_tensor(pile, one[0], **said)
        dist.reduce_scatter(one[0], three, **said)
        dist.reduce_scatter_tensor(one[0], pile, **said)
        dist.all_to_all(three, one, **said)
        dist.all_to_all_single(more, pile, **said)
        dist.broadcast(one[0], 0, **said)
        dist.reduce(one[0], 0, **said)
        dist.gather(one[0], three if rank == 0 else None, **said)
        dist.scatter(one[0], three if rank == 0 else None, **said)
        dist.barrier(**said)
        if rank < 2:
            move = dist.send if rank == 0 else dist.recv
            move(one[0], 1 - rank, **said)

    torch = run_ranks(program)
    assert {ring.slot_bytes for ring in rings_of(torch)} == {128}


def test_ranks_that_say_different_things_are_refused() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        dist.all_reduce(torch.from_numpy(np.ones(4, np.float32)), n_slots=4 + rank)

    with pytest.raises(CollectiveError, match=r"n_slots=5.*expected.*n_slots=4, as rank 0"):
        run_ranks(program)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"n_slotz": 4}, r"all_reduce: found the option 'n_slotz', expected one of algorithm, buf"),
        ({"n_slots": 0}, r"found n_slots=0, expected a whole number from 1 up"),
        ({"slot_size": True}, r"found slot_size=True"),
        ({"buffer_kind": "dram"}, r"found buffer_kind='dram', expected one of tcm, sram, hbm"),
        ({"backpressure": RingKind.TCM}, r"expected one of sleep, poll"),
    ],
)
def test_what_is_no_key_or_no_value_of_it_is_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(CollectiveError, match=message):
        parse_call("all_reduce", said)


def test_keys_may_be_left_open() -> None:
    assert parse_ring("here", {"n_slots": None, "buffer_kind": RingKind.HBM}) == RingOptions(
        RingKind.HBM
    )


def test_rings_without_a_group_are_as_their_installation_says(tmp_path: Path) -> None:
    file = tmp_path / "ccl.yaml"
    file.write_text("algorithms:\n  ring:\n    n_slots: 3\n    slot_size: 64\n")
    with RuntimeContext("ahbm-small") as torch:
        plan = torch.install_ipcq("ring", file, rank_to_pe=PLACES, n_slots=6, buffer_kind="hbm")
        assert plan.neighbours.ring == RingSpec(RingKind.HBM, 6, 64)
        with pytest.raises(CollectiveError, match="the option 'algorithms'"):
            torch.install_ipcq("ring", rank_to_pe=PLACES, algorithms="ring")  # type: ignore[call-arg]


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
