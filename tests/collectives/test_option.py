"""Keys of ``ccl.yaml`` as keywords of one call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.collectives.option import RingOptions, parse_call, parse_ring
from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.errors import CollectiveError
from tilewright.host import RuntimeContext

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
