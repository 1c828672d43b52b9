"""What is about the values of collectives: times, handles, groups, places, refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.collectives.worlds import machine_of_pes, machine_of_sips, places_of_pes, run_ranks
from tilewright.errors import CollectiveError
from tilewright.host import DPPolicy, PeCoord, RuntimeContext

COLUMNS = DPPolicy(cube="column_wise", pe="column_wise")
ROWS = DPPolicy(cube="row_wise", pe="row_wise")


def ones(torch: Any, size: int = 4, dtype: Any = np.float32) -> Any:
    return torch.from_numpy(np.ones(size, dtype))


# -- time ------------------------------------------------------------------------------------------


def test_nobody_leaves_a_barrier_before_all_have_come() -> None:
    came: list[int] = []
    left: list[int] = []

    def program(rank: int, torch: Any, dist: Any) -> None:
        torch.driver.hub.sleep(7_000_000 * rank)
        came.append(torch.now_ps)
        dist.barrier()
        left.append(torch.now_ps)

    run_ranks(4, program)
    assert min(left) > max(came)


def test_a_barrier_takes_the_time_of_messages_between_sips() -> None:
    times: list[int] = []

    def program(_: int, torch: Any, dist: Any) -> None:
        dist.barrier()  # the first also installs rings
        start_ps = torch.now_ps
        dist.barrier()
        times.append(torch.now_ps - start_ps)

    torch = run_ranks(2, program)
    assert min(times) > 2 * torch.machine.spec.fabric.latency_ps


def test_tensors_that_lie_alike_are_not_copied() -> None:
    """Not even those that are rows of a larger one."""

    results: list[tuple[Any, Any]] = []
    starts: list[int] = []

    def program(rank: int, torch: Any, dist: Any) -> None:
        whole = torch.zeros((6, 8), "f32", dp=COLUMNS, timed=False)
        pile = torch.zeros((3, 2, 8), "f32", dp=COLUMNS, timed=False)
        part = torch.full((2, 8), rank, "f32", dp=COLUMNS, timed=False)
        dist.barrier()
        starts.append(len(torch.handles()))
        dist.all_reduce(part)
        dist.all_gather_into_tensor(whole, part)
        dist.all_gather_into_tensor(pile, part)
        dist.reduce_scatter_tensor(part, whole)
        dist.all_to_all_single(whole, whole)
        results.append((pile, part))

    torch = run_ranks(3, program)
    words = [request.what for request in torch.handles()[max(starts) :]]
    assert words
    assert all(what.startswith(("launch", "rings")) for what in words)
    for pile, part in results:
        assert pile.numpy().tolist() == [[[3.0] * 8] * 2] * 3
        assert part.numpy().tolist() == [[9.0] * 8] * 2


def test_rows_that_are_split_only_on_some_ranks_are_exchanged() -> None:
    """One row lies whole on a PE, two do not: ranks cannot know of each other which they have."""

    def program(rank: int, torch: Any, dist: Any) -> None:
        sizes = [[0, 1], [1, 2]][rank]
        given = torch.full((sum(sizes), 4), rank + 1, "f32", dp=ROWS)
        taken = torch.zeros((sum(sizes), 4), "f32", dp=ROWS)
        dist.all_to_all_single(taken, given, sizes, sizes)
        assert taken.numpy()[:, 0].tolist() == [[2.0], [1.0, 2.0, 2.0]][rank]

    run_ranks(2, program)


def test_a_call_without_data_takes_the_same_time() -> None:
    ends = []
    for data in (True, False):

        def program(rank: int, torch: Any, dist: Any) -> None:
            part = torch.full((64, 8), rank, "f16", dp=ROWS)
            dist.all_reduce(part)

        ends.append(run_ranks(2, program, data=data).now_ps)
    assert ends[0] == ends[1]


def test_results_that_a_context_without_data_cannot_have_are_refused() -> None:
    def program(_: int, torch: Any, dist: Any) -> None:
        dist.all_reduce(ones(torch))

    with pytest.raises(CollectiveError, match="on the host, in a context without data"):
        run_ranks(2, program, data=False)


# -- handles ---------------------------------------------------------------------------------------


def test_a_handle_is_complete_once_its_results_are_there() -> None:
    def program(_: int, torch: Any, dist: Any) -> None:
        tensor = ones(torch, 1000)
        work = dist.all_reduce(tensor, async_op=True)
        assert not work.is_completed()
        assert tensor.numpy().max() == 1
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
        assert tensor.numpy().min() == 2
        assert dist.all_reduce(tensor) is None

    run_ranks(2, program)


def test_calls_under_way_at_once_keep_to_their_own_messages() -> None:
    """Of equal sizes and on equal rings, so that mixed messages would be taken for each other."""

    def program(rank: int, torch: Any, dist: Any) -> None:
        tensors = [torch.full((40, 8), k * (rank + 1), "f32", dp=ROWS) for k in range(6)]
        if rank:
            torch.driver.hub.sleep(3_000_000)
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in works:
            work.wait()
        assert [float(tensor[0, 0]) for tensor in tensors] == [3.0 * k for k in range(6)]

    run_ranks(2, program)


def test_a_call_comes_after_launches_that_nobody_waited_for() -> None:
    def add_one(tensor: Any, tl: Any) -> None:
        for _ in range(20):
            tl.store(tensor, tl.load(tensor, shape=(8,)) + 1)

    def program(_: int, torch: Any, dist: Any) -> None:
        tensor = torch.zeros((8,), "f32", dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.launch(add_one, tensor, wait=False)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [40.0] * 8

    run_ranks(2, program)


# -- the world -------------------------------------------------------------------------------------


def test_a_rank_that_is_a_pe_places_its_tensors_there() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        tensor = torch.zeros((4, 4), "f32", dp=DPPolicy(cube="row_wise", pe="row_wise"))
        assert tensor.placement.homes == (PeCoord(*places_of_pes(5)[rank]),)
        dist.all_reduce(tensor)

    run_ranks(5, program, rank_is_pe=True)


def test_a_rank_may_be_any_pes_that_a_map_names() -> None:
    """Here the second PEs of two cubes, and of the two others."""
    torch = RuntimeContext(machine_of_pes())
    places: list[Any] = [[(0, 0, 1), (0, 1, 1)], [PeCoord(0, 2, 1), PeCoord(0, 3, 1)]]

    def worker(rank: int) -> None:
        torch.distributed.init_process_group(rank_to_pe=places)
        tensor = torch.full((8, 4), rank + 1, "f32", dp=DPPolicy(cube="row_wise"))
        homes = (PeCoord(0, 2 * rank, 1), PeCoord(0, 2 * rank + 1, 1))
        assert tensor.placement.homes == homes
        torch.distributed.all_reduce(tensor)
        assert tensor.numpy().tolist() == [[3.0] * 4] * 8

    torch.multiprocessing.spawn(worker, nprocs=2)


def test_a_context_that_ends_waits_for_calls_that_nobody_waited_for() -> None:
    with RuntimeContext(machine_of_sips(2)) as torch:
        works: list[Any] = []

        def worker(rank: int) -> None:
            torch.ahbm.set_device(rank)
            torch.distributed.init_process_group()
            tensor = torch.zeros((8, 4), "f32", dp=ROWS)
            works.append(torch.distributed.all_reduce(tensor, async_op=True))

        torch.multiprocessing.spawn(worker, nprocs=2)
        assert not all(work.is_completed() for work in works)
    assert all(work.is_completed() for work in works)


def test_a_worker_that_has_set_its_sip_places_tensors_there() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        del dist
        assert {pe.sip for pe in torch.zeros(8, dp=ROWS).placement.homes} == {rank}

    run_ranks(2, program)


def test_a_world_begins_and_ends_for_each_rank() -> None:
    torch = RuntimeContext(machine_of_sips(2))

    def worker(rank: int) -> None:
        dist = torch.distributed
        assert dist.is_available()
        assert not dist.is_initialized()
        assert dist.get_world_size() == 2
        dist.init_process_group(backend="ahbm", rank=rank, world_size=2, init_method="env://")
        assert dist.is_initialized()
        assert dist.get_backend() == "ahbm"
        dist.barrier(group=dist.group.WORLD)
        if rank == 0:
            dist.destroy_process_group()
            assert not dist.is_initialized()
        torch.driver.hub.sleep(1_000)
        if rank == 1:
            assert dist.is_initialized()
            dist.destroy_process_group()

    torch.multiprocessing.spawn(worker, nprocs=2)
    torch.multiprocessing.spawn(worker, nprocs=2)  # nothing of the first is left


def test_a_rank_that_is_back_early_waits_in_a_new_world_for_the_others() -> None:
    """Rank 0 joins its second world, of another algorithm, while rank 1 is in the first."""
    found: list[str] = []

    def program(rank: int, torch: Any, dist: Any) -> None:
        first = dist.group.WORLD
        dist.destroy_process_group()
        if rank == 1:
            torch.driver.hub.sleep(1_000_000)
        dist.init_process_group("ahbm", algorithm="direct")
        assert dist.group.WORLD is not first
        tensor = torch.from_numpy(np.array([rank + 1]))
        dist.all_reduce(tensor)
        assert tensor.tolist() == [3]
        found.extend(choice.algorithm.name for choice in dist._checked_world("test").choices)

    run_ranks(2, program, algorithm="ring")
    assert found == ["direct", "direct"]


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({"world_size": 3}, "found world_size=3, expected 2, as the others say"),
        ({"algorithm": "ring"}, "found algorithm='ring', expected None, as the others say"),
        ({"n_slots": 3}, r"found ring=RingOptions\(.*n_slots=3"),
        ({"rank_to_pe": [(0, 0, 0), (1, 0, 0)]}, r"found rank_to_pe=\[\(0, 0, 0\)"),
    ],
)
def test_a_rank_that_says_something_else_of_the_world_is_refused(
    option: dict[str, Any], text: str
) -> None:
    torch = RuntimeContext(machine_of_sips(3))

    def worker(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", **(option if rank else {}))

    with pytest.raises(CollectiveError, match=text):
        torch.multiprocessing.spawn(worker, nprocs=2)


def test_ranks_may_say_the_same_in_other_words(tmp_path: Path) -> None:
    file = tmp_path / "ccl.yaml"
    file.write_text("defaults:\n  algorithm: direct\n")
    torch = RuntimeContext(machine_of_sips(3))
    said: list[dict[str, Any]] = [
        {"rank_to_pe": [(0, 0, 0), (1, 0, 0), (2, 0, 0)], "ccl_yaml": file},
        {"rank_to_pe": ([0, 0, 0], [1, 0, 0], [2, 0, 0]), "ccl_yaml": str(file)},
        {"rank_to_pe": tuple([PeCoord(sip, 0, 0)] for sip in range(3)), "ccl_yaml": file},
    ]

    def worker(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", **said[rank])
        torch.distributed.barrier()

    torch.multiprocessing.spawn(worker, nprocs=3)


def test_groups_number_their_ranks_anew() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        group = dist.new_group([2, 0])
        assert dist.get_process_group_ranks(group) == [2, 0]
        assert dist.get_group_rank(group, 2) == 0
        assert dist.get_global_rank(group, 1) == 0
        assert dist.get_rank(group) == {0: 1, 1: -1, 2: 0}[rank]
        assert dist.get_world_size(group) == {0: 2, 1: -1, 2: 2}[rank]
        if rank != 1:
            tensor = torch.from_numpy(np.array([rank]))
            dist.broadcast(tensor, group_src=0, group=group)
            assert tensor.tolist() == [2]
            outputs = [torch.from_numpy(np.zeros(1, np.int64)) for _ in range(2)]
            dist.all_gather(outputs, torch.from_numpy(np.array([rank])), group=group)
            assert [output.item() for output in outputs] == [2, 0]

    run_ranks(3, program)


def test_outside_of_workers_a_call_is_that_of_all_ranks() -> None:
    torch = RuntimeContext(machine_of_sips(3))
    torch.distributed.init_process_group()
    tensor = torch.full((4, 4), 2, "f32", dp=ROWS)  # a copy on every SIP
    torch.distributed.all_reduce(tensor)
    assert tensor.numpy().tolist() == [[6.0] * 4] * 4
    work = torch.distributed.all_reduce(tensor, async_op=True)
    assert work is not None
    assert not work.is_completed()
    work.wait()
    assert work.is_completed()
    assert tensor.numpy().max() == 18


# -- what is refused -------------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[int, Any, Any], Any], str]] = [
    (lambda _, t, d: d.all_reduce(ones(t, 4, np.int32), op="avg"), "avg of int32"),
    (lambda _, t, d: d.all_reduce(ones(t, 4, np.bool_), op="avg"), "avg of int1"),
    (lambda _, t, d: d.all_reduce(ones(t), op="bxor"), "bxor of fp32"),
    (lambda _, t, d: d.all_reduce(ones(t), op="median"), "op='median'"),
    (lambda r, t, d: d.send(ones(t), dst=r), "itself as its peer"),
    (lambda _, t, d: d.recv(ones(t)), "recv: found neither"),
    (lambda _, t, d: d.broadcast(ones(t), src=7), "found rank 7"),
    (lambda _, __, d: d.all_reduce(np.ones(4)), "an object of ndarray, expected a tensor"),
    (lambda _, t, d: d.all_gather_into_tensor([ones(t)] * 2, ones(t)), "an object of list"),
    (lambda _, t, d: d.reduce_scatter_tensor(None, ones(t)), "an object of NoneType"),
    (lambda _, t, d: d.all_to_all_single(ones(t), [1], [2, 2], [2, 2]), "an object of list"),
    (lambda _, t, d: d.send(ones(t), dst=1, group=d.new_group([1])), "found rank 0"),
    (lambda _, t, d: d.broadcast(ones(t), src=0, group_src=0), "found both"),
    (lambda _, t, d: d.all_gather([ones(t)], ones(t)), "found 1 tensors, expected 2"),
    (lambda _, t, d: d.all_gather([ones(t), ones(t, 5)], ones(t)), "parts of 4 and 5 elements"),
    (lambda _, t, d: d.all_gather([ones(t), ones(t, 4, np.int8)], ones(t)), "fp32 and int8"),
    (lambda _, t, d: d.all_gather_into_tensor(ones(t, 9), ones(t)), "as many rows for each rank"),
    (lambda _, t, d: d.all_to_all_single(ones(t), ones(t), [1, 2], [2, 2]), "split sizes"),
    (lambda _, t, d: d.gather(ones(t), [ones(t), ones(t)], dst=0), "a list of tensors by rank 1"),
    (lambda _, __, d: d.new_group([0, 0]), "each once"),
    (lambda _, __, d: d.new_group([5]), "rank 5"),
    (lambda r, _, d: d.new_group([r]), "as others say"),
    (lambda _, __, d: d.init_process_group(), "a second call"),
    (lambda _, t, d: d.batch_isend_irecv([d.P2POp(d.send, ones(t), 0)]), "the op"),
]


@pytest.mark.parametrize(("program", "words"), REFUSED)
def test_a_call_that_cannot_be_is_refused(
    program: Callable[[int, Any, Any], Any], words: str
) -> None:
    with pytest.raises(CollectiveError, match=words):
        run_ranks(2, program)


def test_what_needs_a_world_or_a_worker_says_so() -> None:
    torch = RuntimeContext(machine_of_sips(2))
    with pytest.raises(CollectiveError, match="init_process_group"):
        torch.distributed.all_reduce(ones(torch))
    with pytest.raises(CollectiveError, match="the backend 'nccl'"):
        torch.distributed.init_process_group("nccl")
    with pytest.raises(CollectiveError, match="join=False"):
        torch.multiprocessing.spawn(print, join=False)
    with pytest.raises(CollectiveError, match="the same PEs in each of its cubes"):
        torch.distributed.init_process_group(rank_to_pe=[[(0, 0, 0), (1, 0, 1)]])
    with pytest.raises(CollectiveError, match="3 ranks, expected 1 to 2"):
        torch.distributed.init_process_group(world_size=3)
    with pytest.raises(CollectiveError, match="expected a PE of the machine"):
        torch.distributed.init_process_group(rank_to_pe=[(0, 0, 0), (0, 9, 0)])
    torch.distributed.init_process_group()
    with pytest.raises(CollectiveError, match="a call outside of workers"):
        torch.distributed.send(ones(torch), dst=1)


def test_a_tensor_of_another_context_is_refused() -> None:
    other = RuntimeContext(machine_of_sips(2))

    def program(_: int, torch: Any, dist: Any) -> None:
        del torch
        dist.all_reduce(ones(other))

    with pytest.raises(CollectiveError, match="of another context"):
        run_ranks(2, program)


def test_a_call_by_a_rank_outside_of_the_group_does_nothing_and_is_noted() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        group = dist.new_group([1, 2])
        tensor = torch.from_numpy(np.full(3, rank + 1, np.float32))
        outputs = [ones(torch, 3), ones(torch, 3)]
        works = [
            dist.all_reduce(tensor, group=group, async_op=True),
            dist.gather(tensor, outputs if rank == 1 else None, dst=1, group=group, async_op=True),
            dist.barrier(group, async_op=True),
        ]
        assert (works == [None] * 3) == (rank == 0)
        for work in works:
            if work is not None:
                work.wait()
        assert tensor.tolist() == [[1.0] * 3, [5.0] * 3, [5.0] * 3][rank]

    notes = run_ranks(3, program).distributed.notes
    assert "all_reduce in group 1 by rank 0, which is not in it: not done" in notes


def test_a_number_is_no_map_of_ranks() -> None:
    torch = RuntimeContext(machine_of_sips(2))
    number: Any = 2
    with pytest.raises(CollectiveError, match="an object of int, expected a list of PEs"):
        torch.install_ipcq(rank_to_pe=number)
    with pytest.raises(CollectiveError, match="an object of int, expected a list of PEs"):
        torch.distributed.init_process_group(rank_to_pe=number)
