import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.collectives.worlds import machine_of_sips, run_ranks
from tilewright import language as tl
from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Proof
from tilewright.errors import CollectiveError, DeadlockError
from tilewright.host import DPPolicy, LocalShard, RuntimeContext


def ones(torch: Any, size: int = 4, dtype: Any = np.float32) -> Any:
    return torch.from_numpy(np.ones(size, dtype))


def test_a_failing_rank_ends_all_with_its_own_traceback() -> None:
    def fail_in_a_function_of_mine() -> None:
        raise KeyError("no such key")

    def program(rank: int, torch: Any, dist: Any) -> None:
        if rank == 1:
            fail_in_a_function_of_mine()
        dist.all_reduce(ones(torch))

    with pytest.raises(KeyError, match="no such key") as caught:
        run_ranks(3, program)
    assert caught.value.__notes__ == ["in rank 1 of 3"]
    lines = "".join(traceback.format_tb(caught.value.__traceback__))
    assert "fail_in_a_function_of_mine" in lines


def test_a_rank_that_leaves_while_others_wait_is_reported() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        dist.all_reduce(ones(torch))
        if rank != 2:
            dist.broadcast(ones(torch, 8), src=0)
            dist.barrier()

    words = (
        r"rank 0 waits in barrier \(call 2 of the world\); rank 1 waits in broadcast of 8 elements"
        r" of fp32, root 0 \(call 1 of the world\); rank 2 has ended"
    )
    with pytest.raises(CollectiveError, match=words):
        run_ranks(3, program, algorithm="double_tree")  # rank 1 is below rank 2


def test_a_rank_that_waits_in_a_launch_of_its_own_is_told_by_kernel_and_line() -> None:
    def listen(x: Any) -> None:
        tl.store(x, tl.recv("W", (4,), tl.float32))

    def program(rank: int, torch: Any, dist: Any) -> None:
        del dist
        if rank == 0:
            x = torch.empty((4,), "f32", dp=DPPolicy(num_cubes=1, num_pes=1))
            torch.install_ipcq("ring", rank_to_pe=[(0, 0, 0), (1, 0, 0)])
            torch.launch(listen, LocalShard(x))

    line = listen.__code__.co_firstlineno + 1
    with pytest.raises(DeadlockError, match=rf"message 0 from 'W' .*test_work.py:{line} in listen"):
        run_ranks(2, program)


def test_ranks_in_different_groups_are_told_where_each_waits() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
        dist.all_reduce(ones(torch), group=groups[rank])

    words = r"rank 0 waits in .*call 0 of group 1\); rank 1 waits in .*call 0 of group 2\)"
    with pytest.raises(CollectiveError, match=words):
        run_ranks(2, program)


def test_ranks_that_receive_from_each_other_first_are_told_so() -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        dist.recv(ones(torch), src=1 - rank)
        dist.send(ones(torch), dst=1 - rank)

    words = r"rank 0 waits in message of 4 elements of fp32 \(.* from rank 1 to rank 0"
    with pytest.raises(CollectiveError, match=words):
        run_ranks(2, program)


def test_a_plan_of_a_users_that_is_wrong_is_refused_before_it_runs() -> None:
    def nobody_sends(call: Call, lane: int) -> Plan:
        del lane
        return Plan(call.num_ranks, ((),) * call.num_ranks)

    broken = Algorithm("broken", frozenset({Operation.ALL_REDUCE}), nobody_sends)

    def program(_: int, torch: Any, dist: Any) -> None:
        dist.all_reduce(ones(torch))

    words = "broken all_reduce of 2 ranks, lane 0: found block 0 of rank 0 with the values of"
    with pytest.raises(CollectiveError, match=words):
        run_ranks(2, program, algorithm="broken", algorithms={**ALGORITHMS, "broken": broken})


def test_ranks_that_follow_different_plans_get_the_report_of_who_waits_for_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilewright.collectives.algorithm.check_plan", lambda *_: Proof())

    def all_wait(call: Call, lane: int) -> Plan:
        right = ALGORITHMS["ring"].plan(call, lane)
        return Plan(right.num_blocks, tuple(steps[1:] for steps in right.steps))

    broken = Algorithm("broken", frozenset({Operation.ALL_REDUCE}), all_wait)

    def program(_: int, torch: Any, dist: Any) -> None:
        dist.all_reduce(ones(torch))

    with pytest.raises(DeadlockError, match=r"waits for message 0 from 'rank1'"):
        run_ranks(2, program, algorithm="broken", algorithms={**ALGORITHMS, "broken": broken})


@pytest.mark.parametrize(
    ("size", "dtype", "op"),
    [(5, np.float32, "sum"), (4, np.float16, "sum"), (4, np.float32, "max")],
)
def test_calls_that_do_not_match_are_refused_naming_both_ranks(
    size: int, dtype: Any, op: str
) -> None:
    def program(rank: int, torch: Any, dist: Any) -> None:
        if rank == 1:
            dist.all_reduce(ones(torch, size, dtype), op=op)
        else:
            dist.all_reduce(ones(torch))

    words = "call 0 of the world: found all_reduce of .* by rank 1, expected .* as rank 0 calls it"
    with pytest.raises(CollectiveError, match=words):
        run_ranks(2, program)


def test_another_operation_another_root_and_a_barrier_are_no_match() -> None:
    calls: list[Callable[[Any, Any], Any]] = [
        lambda torch, dist: dist.all_reduce(torch.from_numpy(np.ones(1, np.int32))),
        lambda torch, dist: dist.broadcast(ones(torch), src=0),
        lambda torch, dist: dist.broadcast(ones(torch), src=1),
        lambda _, dist: dist.barrier(),
    ]
    for first in calls:
        for second in calls:
            if first is second:
                continue

            def program(rank: int, torch: Any, dist: Any) -> None:
                (first, second)[rank](torch, dist)  # noqa: B023  # runs in this turn

            with pytest.raises(CollectiveError, match=r"as rank [01] calls it"):
                run_ranks(2, program)


def test_workers_return_nothing_start_once_and_cannot_start_others() -> None:
    torch = RuntimeContext(machine_of_sips(2))
    with pytest.raises(CollectiveError, match="nprocs=0"):
        torch.multiprocessing.spawn(lambda _: None, nprocs=0)
    with pytest.raises(CollectiveError, match="by rank 0"):
        torch.multiprocessing.spawn(lambda _: torch.multiprocessing.spawn(lambda _: None), nprocs=1)


def test_all_ranks_call_before_any_of_them_goes_on() -> None:
    order: list[str] = []

    def program(_: int, torch: Any, dist: Any) -> None:
        work = dist.all_reduce(ones(torch), async_op=True)
        order.append("called")
        work.wait()
        order.append("went on")

    run_ranks(4, program)
    assert order == ["called"] * 4 + ["went on"] * 4


def test_what_nobody_asked_for_by_name_is_noted() -> None:
    with RuntimeContext("ahbm-small") as torch:
        places = [(0, 0, pe) for pe in range(3)]
        torch.distributed.init_process_group(rank_to_pe=places)
        torch.distributed.all_reduce(torch.from_numpy(np.ones(5, np.float32)))
        chosen, *staged = torch.distributed.notes
        assert "all_reduce in the world takes " in chosen
        assert "the least of" in chosen
        assert [note.split(" in ")[0] for note in staged] == [
            f"all_reduce of rank {rank}" for rank in range(3)
        ]
        assert all("copied through the host" in note for note in staged)
