"""Workers of KernBench programs: who fails, who is ended, and which context a spawn is for."""

import gc
import pickle

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context, two_sips
from tests.interop.kernbench.worlds import filled, run_ranks
from tilewright.errors import CollectiveError, ProgramError
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.multiprocessing import SpawnException, spawn


def test_workers_get_their_rank_and_the_arguments() -> None:
    torch, seen = context(two_sips()), []
    torch.multiprocessing.spawn(lambda *args: seen.append(args), ("a", 3), nprocs=3)
    assert seen == [(rank, "a", 3) for rank in range(3)]
    assert torch.distributed.get_rank() == 0  # outside of workers


def test_the_devices_of_workers_are_their_own() -> None:
    def work(rank: int, torch: RuntimeContext) -> list[int]:
        torch.distributed.barrier()  # the other one has set its device, too
        assert torch.ahbm.current_device() == rank
        return [shard.sip for shard in filled(torch, np.ones(4, np.float16)).shards]

    assert run_ranks(work) == {0: [0], 1: [1]}


def test_the_root_cause_is_raised_and_siblings_get_system_exit() -> None:
    torch, ended = context(two_sips()), []
    torch.distributed.init_process_group()

    def worker(rank: int) -> None:
        if rank == 1:
            raise KeyError("mine")
        try:
            torch.distributed.barrier()
        except SystemExit:
            ended.append(rank)
            raise

    with pytest.raises(
        SpawnException, match=r"rank 1: .*test_multiprocessing.py:\d+, KeyError"
    ) as caught:
        torch.multiprocessing.spawn(worker, nprocs=2)
    assert ended == [0]
    assert {rank: repr(error) for rank, error in caught.value.errors.items()} == {
        1: "KeyError('mine')"
    }
    assert list(pickle.loads(pickle.dumps(caught.value)).errors) == [1]
    torch.multiprocessing.spawn(lambda _: None, nprocs=2)  # the program may go on


@pytest.mark.parametrize(("nprocs", "join"), [(0, True), (2, False)])
def test_workers_that_nobody_could_wait_for_are_refused(nprocs: int, join: bool) -> None:
    with pytest.raises(CollectiveError, match=r"nprocs=0|join=False"):
        context().multiprocessing.spawn(lambda _: None, nprocs=nprocs, join=join)


def test_spawn_of_the_module_takes_the_context_among_the_arguments_else_the_newest() -> None:
    first, second, seen = context(two_sips()), context(two_sips()), []

    def worker(rank: int, *contexts: RuntimeContext) -> None:
        given = (*contexts, second)[0]
        seen.append((rank, given.distributed.get_rank()))

    spawn(worker, (first,), 2)
    spawn(worker, (), 2)
    assert seen == [(0, 0), (1, 1)] * 2


def test_spawn_without_any_context_is_refused() -> None:
    gc.collect()  # those of other tests
    made = context()
    made.multiprocessing.spawn(lambda _: None)
    del made
    gc.collect()
    with pytest.raises(ProgramError, match="found no runtime context, expected one whose workers"):
        spawn(lambda _: None, (), 2)
