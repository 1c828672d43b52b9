"""Launches that go wrong, through the host: what they say, and what the context does next."""

import gc
import inspect
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectives.worlds import machine_of_sips, places_of_pes
from tests.kinds import every_engine, needs_both_engines
from tests.system import wrong_launches
from tests.system.wrong_launches import COPIES, FAILURES, PAIR, RIGHT, SIZE, context, values
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.engine.service import ProgramGreenlet
from tilewright.errors import CollectiveError, KernelError, LaunchEndedError, MessageError
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.program import running_program
from tilewright.host import DPPolicy, PeCoord, RuntimeContext, Tensor
from tilewright.runtime.message import MemoryReadMsg, MemoryWriteMsg
from tilewright.runtime.workspace import Workspace

every_failure = pytest.mark.parametrize("name", FAILURES)
ROOT = Path(__file__).parents[2]
SOURCE = inspect.getsource(wrong_launches).splitlines()


def pair(torch: RuntimeContext, seed: int = 0) -> tuple[Tensor, Tensor]:
    x = torch.empty(2 * SIZE, "f32", dp=COPIES).copy_(values(seed), timed=False)
    return x, torch.zeros(2 * SIZE, "f32", dp=COPIES, timed=False)


def slow(x: Any, out: Any) -> None:
    for _ in range(50):
        tl.store(out + tl.arange(0, SIZE), tl.load(x + tl.arange(0, SIZE)))


def line_of(comment: str) -> int:
    return next(number for number, line in enumerate(SOURCE, start=1) if comment in line)


def fail(torch: RuntimeContext, name: str, x: Tensor, out: Tensor) -> BaseException:
    with pytest.raises(FAILURES[name].error) as caught:
        FAILURES[name].launch(torch, x, out)
    return caught.value


# -- what is said, and what comes next -------------------------------------------------------------


@every_engine
@every_failure
def test_a_launch_that_fails_says_where_and_the_context_goes_on(
    name: str, kind: EngineKind
) -> None:
    failure = FAILURES[name]
    with context(engine=kind) as torch:
        x, out = pair(torch)
        text = str(fail(torch, name, x, out))
        assert re.search(".*".join(failure.words), text, re.DOTALL), text
        if failure.line:
            line = f"wrong_launches.py:{line_of(failure.line)} in {failure.kernel.__name__}"
            assert line in text
        for right in RIGHT.values():
            right.launch(torch, x, out)
            np.testing.assert_array_equal(out.numpy(), right.meaning(values(0)))
        x.free()
        torch.wait_all()  # nobody hears of the failure twice


@needs_both_engines
@every_failure
def test_what_a_failed_launch_leaves_is_the_same_on_both_engines_and_under_the_sanitizer(
    name: str,
) -> None:
    found = []
    for kind, sanitize in [(kind, False) for kind in EngineKind] + [(EngineKind.NATIVE, True)]:
        torch = context(engine=kind, sanitize=sanitize)
        x, out = pair(torch)
        fail(torch, name, x, out)
        left = [torch.now_ps, out.numpy().tolist()]
        reports = [right.launch(torch, x, out).report for right in RIGHT.values()]
        found.append([*left, *((each.submitted_ps, each.completed_ps) for each in reports)])
    assert found[0] == found[1] == found[2]


@every_engine
def test_stores_that_were_served_before_the_error_are_visible_and_none_follows(
    kind: EngineKind,
) -> None:
    torch = context(engine=kind)
    x, out = pair(torch)
    fail(torch, "divides", x, out)
    first, second = (out.numpy() - values(0)).reshape(2, SIZE)
    assert set(first) == {2}  # the last store before the load that the failing program waited for
    assert len(set(second)) == 1  # of a program that was in its forty stores: one of them
    assert second[0] < 39
    for _ in range(3):
        RIGHT["double"].launch(torch, x, torch.zeros(2 * SIZE, "f32", dp=COPIES))
    np.testing.assert_array_equal((out.numpy() - values(0))[SIZE:], second)


@every_engine
def test_a_deadlock_leaves_the_stores_before_it_and_cold_tlbs(kind: EngineKind) -> None:
    torch = context(engine=kind)
    x, out = pair(torch)
    RIGHT["double"].launch(torch, x, out)
    fail(torch, "deadlock", x, out)
    np.testing.assert_array_equal(out.numpy(), values(0))  # the deadlock itself wrote nothing
    walks = [torch.driver.mmus[pe].state.walks for pe in PAIR]
    RIGHT["double"].launch(torch, x, out)
    RIGHT["double"].launch(torch, x, out)
    assert [torch.driver.mmus[pe].state.walks for pe in PAIR] == [each + 2 for each in walks]


@every_engine
def test_a_program_that_an_error_ends_cleans_up_and_stays_ended(kind: EngineKind) -> None:
    ends: list[int] = []

    def tidy(x: Any) -> None:
        try:
            if tl.program_id(0) == 0:
                int(tl.load(x))
                raise ValueError("on purpose")
            for _ in range(1000):
                int(tl.load(x))
        finally:
            ends.append(int(tl.program_id(0)))
            tl.store(x, 7.0)

    torch = context(engine=kind)
    x, _ = pair(torch)
    with pytest.raises(ValueError, match="on purpose"):
        torch.launch(tidy, x, grid=(2,), on=PAIR)
    assert sorted(ends) == [0, 1]
    torch.launch(lambda x: tl.load(x), x)
    assert x.numpy()[0] == values(0)[0]


@every_engine
def test_no_greenlet_is_left_after_launches_that_failed(kind: EngineKind) -> None:
    def num_live() -> int:
        gc.collect()
        return sum(type(each) is ProgramGreenlet and bool(each) for each in gc.get_objects())

    before = num_live()
    torch = context(engine=kind)
    x, out = pair(torch)
    for name in FAILURES:
        fail(torch, name, x, out)
    assert num_live() == before


def test_a_process_whose_launches_failed_ends_without_words_of_the_compiled_core() -> None:
    script = """
from tests.system.wrong_launches import FAILURES, COPIES, SIZE, context
torch = context()
x, out = (torch.zeros(2 * SIZE, "f32", dp=COPIES) for _ in range(2))
for failure in FAILURES.values():
    try:
        failure.launch(torch, x, out)
    except failure.error:
        pass
FAILURES["divides"].launch(torch, x, out)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "ZeroDivisionError: integer division or modulo by zero" in ended.stderr
    assert "nanobind" not in ended.stderr


@every_engine
def test_an_interrupt_from_outside_ends_the_launch_alone(kind: EngineKind) -> None:
    def endless(x: Any) -> None:
        while True:
            tl.store(x + tl.arange(0, SIZE), tl.load(x + tl.arange(0, SIZE)))

    torch = context(engine=kind)
    x, out = pair(torch)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                torch.launch(endless, x, grid=(2,), on=PAIR)
            np.testing.assert_array_equal(x.numpy(), values(0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    RIGHT["exchange"].launch(torch, x, out)
    np.testing.assert_array_equal(out.numpy(), np.roll(values(0), SIZE))


# -- what is under way beside it -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["divides", "late"])
def test_the_handles_of_launches_that_another_s_error_has_ended_say_so_once(name: str) -> None:
    torch = context()
    x, out = pair(torch)
    other = torch.launch("other", slow, x, out, wait=False)
    error = fail(torch, name, x, out)
    found = f"programs that were ended at {torch.now_ps} ps by {type(error).__name__}"
    words = re.escape(f"launch of 'other': found {found}")
    with pytest.raises(LaunchEndedError, match=words):
        out.numpy()  # it waits for the other launch, whose stores are not all there
    out.numpy()
    torch.wait_all()
    assert torch.is_completed(other)
    for ask in (other.wait, lambda: other.report, lambda: torch.wait(other)):
        with pytest.raises(LaunchEndedError):
            ask()
    assert [report.name for report in torch.reports] == []


def test_the_failed_launch_itself_raises_again_only_where_it_is_asked_for() -> None:
    torch = context()
    x, out = pair(torch)
    handle = FAILURES["divides"].launch(torch, x, out, wait=False)
    with pytest.raises(ZeroDivisionError):
        torch.wait_all()
    torch.wait_all()
    with pytest.raises(LaunchEndedError, match=r"ended at \d+ ps by ZeroDivisionError"):
        handle.wait()


@every_engine
def test_what_the_host_has_asked_for_happens_in_spite_of_an_error(kind: EngineKind) -> None:
    torch = context(engine=kind)
    x, out = pair(torch)
    address = torch.machine.addresses.hbm(PeCoord(0, 3, 1), 0).value
    data = bytes(range(256)) * 256
    write = torch.submit(MemoryWriteMsg(address, len(data), data=data))
    fail(torch, "shapes", x, out)
    assert torch.is_completed(write)
    assert torch.wait(write).ok
    read = MemoryReadMsg(address, len(data))
    torch.wait(torch.submit(read))
    assert read.data == data


def test_after_a_failing_rank_the_next_workers_reduce_as_ever() -> None:
    torch = context()
    dist = torch.distributed
    found: list[list[float]] = []

    def worker(rank: int, is_wrong: bool) -> None:
        if not dist.is_initialized():
            dist.init_process_group("ahbm", rank_to_pe=places_of_pes(2))
        tensor = torch.full((8,), rank + 1, "f32", dp=DPPolicy())
        dist.all_reduce(tensor)
        if is_wrong and rank == 1:
            raise LookupError("rank 1 alone")
        dist.all_reduce(tensor)
        found.append(tensor.numpy().tolist())

    for _ in range(2):
        with pytest.raises(LookupError, match="rank 1 alone"):
            torch.multiprocessing.spawn(worker, (True,), nprocs=2)
        torch.multiprocessing.spawn(worker, (False,), nprocs=2)
    assert found == [[6.0] * 8] * 4
    torch.cleanup()


def test_collectives_outside_of_workers_go_on_over_the_rings_that_they_have() -> None:
    torch = RuntimeContext(machine_of_sips(2))
    torch.distributed.init_process_group()
    tensor = torch.full((4, 4), 1, "f32", dp=DPPolicy(cube="row_wise", pe="row_wise"))
    torch.distributed.all_reduce(tensor)
    work = torch.distributed.all_reduce(tensor, async_op=True)
    assert work is not None
    with pytest.raises(LookupError, match="on purpose"):
        torch.launch(_fails_at_once)
    with pytest.raises(CollectiveError, match="a call that ended with LookupError: on purpose"):
        work.wait()
    tensor.fill_(1)
    num_installed = len([each for each in torch.handles() if each.what.startswith("rings")])
    for _ in range(2):
        torch.distributed.all_reduce(tensor)
    assert tensor.numpy().tolist() == [[4.0] * 4] * 4
    installs = [each for each in torch.handles() if each.what.startswith("rings")]
    assert len(installs) == num_installed == 1
    torch.cleanup()


def _fails_at_once() -> None:
    raise LookupError("on purpose")


def test_memory_of_tensors_that_are_freed_while_something_fails_is_given_back() -> None:
    torch = context()
    x, out = pair(torch)
    other = torch.launch(slow, x, out, wait=False)
    fail(torch, "divides", x, out)
    with pytest.raises(LaunchEndedError):
        x.free()  # it waits for the other launch
    assert x.is_freed
    assert torch.is_completed(other)

    begun: list[bool] = []

    def worker(rank: int) -> None:
        if rank == 0:
            mine = torch.zeros(4096, "f32", dp=COPIES)
            begun.append(True)
            mine.free()  # under way when the other rank fails
        while not begun:
            torch.driver.hub.sleep(1000)
        raise LookupError("rank 1 alone")

    with pytest.raises(LookupError):
        torch.multiprocessing.spawn(worker, nprocs=2)
    gc.collect()
    torch.cleanup()
    allocators = torch.driver.memory._allocators.values()
    assert sum(each.statistics.used_bytes for each in allocators) == 0


# -- messages that nobody receives -----------------------------------------------------------------


def test_every_message_that_is_left_is_named_with_its_line_and_counted() -> None:
    def talks(x: Any) -> None:
        block = tl.load(x + tl.arange(0, 8))
        if tl.program_id(0) == 0:
            for _ in range(3):
                tl.send("E", block)  # thrice
        else:
            tl.send("W", block)

    torch = context()
    x, out = pair(torch)
    neighbours = FAILURES["message"].options["neighbours"]
    with pytest.raises(MessageError) as caught:
        torch.launch(talks, x, grid=(2,), on=PAIR, neighbours=neighbours)
    assert caught.value.where == "launch of 'talks'"
    first, east, west = caught.value.found.splitlines()
    line = talks.__code__.co_firstlineno + 4
    assert first == "4 messages that no program has received:"
    assert east == (
        "3 of 3 from sip0.cube0.pe0 to 'E' (sip0.cube0.pe1, whose tl.recv('W') they wait for), "
        f"sent at {__file__}:{line} in talks (3 times)"
    )
    assert west.startswith("1 of 1 from sip0.cube0.pe1 to 'W' (sip0.cube0.pe0")
    RIGHT["exchange"].launch(torch, x, out)
    np.testing.assert_array_equal(out.numpy(), np.roll(values(0), SIZE))


def test_a_launch_that_nobody_waited_for_tells_of_its_messages_when_somebody_does() -> None:
    torch = context()
    x, out = pair(torch)
    handle = FAILURES["message"].launch(torch, x, out, wait=False)
    with pytest.raises(MessageError, match="1 message that no program has received"):
        torch.wait_all()
    np.testing.assert_array_equal(out.numpy(), np.tile(values(0)[:SIZE], 2))  # all have run
    with pytest.raises(MessageError):
        _ = handle.report


def test_a_workspace_reports_messages_that_are_left_and_takes_the_next_launch() -> None:
    workspace = Workspace(wrong_launches.machine())
    x = workspace.place(values(0), PAIR)
    out = workspace.place(np.zeros_like(values(0)), PAIR)
    neighbours = Neighbours(wrong_launches.NEIGHBOURS)
    for kernel, error in (
        (wrong_launches.sends_too_often, MessageError),
        (wrong_launches.divides, ZeroDivisionError),
    ):
        with pytest.raises(error):
            workspace.launch(kernel, x, out, grid=(2,), pes=PAIR, neighbours=neighbours)
        workspace.launch(
            wrong_launches.exchange, x, out, grid=(2,), pes=PAIR, neighbours=neighbours
        )
        np.testing.assert_array_equal(workspace.read(out), np.roll(values(0), SIZE))
    workspace.free(x)


# -- launches without tensors ----------------------------------------------------------------------


def test_a_launch_without_tensors_runs_on_the_pes_of_the_current_device() -> None:
    torch = RuntimeContext("ahbm", engine="native")
    for grid, num_programs in ((None, 256), ((3,), 3), (lambda _: (300,), 300)):
        report = torch.launch(lambda: None, grid=grid).report
        assert report.num_programs == num_programs
        assert len(report.pes) == min(256, num_programs)
    torch.ahbm.set_device(1)
    report = torch.launch(lambda: None).report
    assert (report.num_programs, {pe.sip for pe in report.pes}) == (128, {1})
    torch = RuntimeContext("ahbm", "sip:0", engine="native")
    assert {pe.sip for pe in torch.launch(lambda: None).report.pes} == {0}
    assert torch.launch(lambda: None, on=PAIR).report.pes == tuple(PAIR)
    assert torch.launch(lambda: None, grid=(5,), on=PAIR).report.num_programs == 5


def test_a_function_places_the_programs_of_a_grid_without_tensors_and_needs_a_grid() -> None:
    torch = context()
    seen: list[tuple[int, str]] = []

    def note() -> None:
        seen.append((int(tl.program_id(0)), str(running_program().stream.pe.name)))

    torch.launch(note, grid=(3,), on=lambda number: PAIR[number % 2])
    assert sorted(seen) == [(0, "sip0.cube0.pe0"), (1, "sip0.cube0.pe1"), (2, "sip0.cube0.pe0")]
    with pytest.raises(KernelError, match="a function of a program's ids, without a grid"):
        torch.launch(note, on=lambda number: PAIR[number % 2])


# -- any order -------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.sampled_from([*RIGHT, *FAILURES]), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=5,
)


@needs_both_engines
@given(steps=steps)
@settings(max_examples=settings().max_examples // 2)
def test_right_launches_between_failing_ones_give_what_they_give_on_a_fresh_context(
    steps: list[tuple[str, int, bool]],
) -> None:
    times: list[list[int]] = []
    for kind in EngineKind:
        torch = context(engine=kind)
        x, out = pair(torch)
        times.append([])
        for name, seed, waits in steps:
            x.copy_(values(seed), timed=False)
            if name in FAILURES:
                with pytest.raises(FAILURES[name].error):
                    FAILURES[name].launch(torch, x, out, wait=waits).wait()
            else:
                report = RIGHT[name].launch(torch, x, out, wait=waits).wait()
                np.testing.assert_array_equal(out.numpy(), RIGHT[name].meaning(values(seed)))
                times[-1] += [report.submitted_ps, report.completed_ps]
            times[-1].append(torch.now_ps)
        torch.cleanup()
    assert times[0] == times[1]
