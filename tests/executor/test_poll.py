"""Polls of memory that can find nothing new any more, and those that still may."""

import re
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.engine.spec import Limits
from tilewright.errors import DeadlockError, LimitError
from tilewright.executor import poll
from tilewright.executor.neighbour import Neighbours
from tilewright.host import DPPolicy, RuntimeContext

FIRST_WAITS = poll.FIRST_WAITS


@pytest.fixture(autouse=True)
def _few_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at programs from their first wait on: a poll that may succeed is still not stopped."""
    monkeypatch.setattr(poll, "FIRST_WAITS", 1)
    monkeypatch.setattr(poll, "MAX_POLLS", 32)


def run(kernel: Callable[..., Any], num_pes: int = 2, engine: EngineKind | Auto = AUTO) -> Array:
    """Two words in memory, zero at first."""
    bed = Bed(num_pes=num_pes, engine=engine)
    words = bed.place(np.zeros(2, np.int32))
    first, second = bed.pes[0], bed.pes[-1]
    table = {first: {"E": second}, second: {"W": first}}
    neighbours = Neighbours(table) if num_pes == 2 else None
    bed.launch(kernel, words, grid=(num_pes,), neighbours=neighbours)
    return bed.read(words)


def by_load(flag: Any) -> None:
    while tl.load(flag) == 0:
        pass


def by_variable(flag: Any) -> None:
    while True:
        value = tl.load(flag)
        if value == 1:
            break


def by_block(flag: Any) -> None:
    while tl.max(tl.load(flag + tl.arange(0, 2)), 0) == 0:
        pass


def by_turns(flag: Any) -> None:
    while tl.load(flag) == 0 and tl.load(flag + 1) == 0:
        pass


def by_lock(flag: Any) -> None:
    while tl.atomic_cas(flag, 1, 2) != 1:
        pass


def by_adding_nothing(flag: Any) -> None:
    while tl.atomic_add(flag, 0) == 0:
        pass


def in_a_later_turn(flag: Any) -> None:
    for turn in range(3):
        while tl.atomic_load(flag) < turn:
            pass


@every_engine
@pytest.mark.parametrize(
    "kernel",
    [by_load, by_variable, by_block, by_turns, by_lock, by_adding_nothing, in_a_later_turn],
)
def test_polling_for_ever_ends_with_who_polls_what_since_when(
    kernel: Callable[..., Any], kind: EngineKind
) -> None:
    with pytest.raises(DeadlockError) as caught:
        run(kernel, 1, kind)
    (line,) = caught.value.waiters
    name = kernel.__name__
    who = rf"program \(0,\) of {name} on sip0\.cube0\.pe0 at \S*test_poll\.py:\d+ in {name}"
    assert re.fullmatch(rf"{who} has polled array0\[[01]\] \(0x\w+\) \d+ times since \d+ ps", line)


def test_a_deadlock_is_found_within_a_thousand_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "FIRST_WAITS", FIRST_WAITS)
    limits = Limits(commands=2000)
    with RuntimeContext("ahbm-small", limits=limits) as torch:
        flag = torch.zeros(1, "i32", dp=DPPolicy(num_sips=1), name="flag")
        with pytest.raises(DeadlockError, match=r"has polled flag\[0\]"):
            torch.launch(by_load, flag)
        flag.fill_(1)
        torch.launch(by_load, flag)


def test_programs_that_poll_for_each_other_are_all_named() -> None:
    def kernel(flags: Any) -> None:
        here = tl.program_id(0)
        while tl.atomic_load(flags + here) == 0:
            pass
        tl.atomic_store(flags + 1 - here, 1)

    with pytest.raises(DeadlockError) as caught:
        run(kernel)
    assert len(caught.value.waiters) == 2


def test_a_program_that_waits_for_the_one_that_polls_does_not_keep_it_going() -> None:
    def kernel(flag: Any) -> None:
        if tl.program_id(0) == 0:
            tl.recv("E", (8,), tl.float32)
            tl.atomic_store(flag, 1)
        else:
            while tl.atomic_load(flag) == 0:
                pass
            tl.send("W", tl.zeros((8,), tl.float32))

    with pytest.raises(DeadlockError, match="only programs that poll") as caught:
        run(kernel)
    assert len(caught.value.waiters) == 1


def test_a_poll_that_counts_is_stopped_where_it_says_that_it_polls() -> None:
    def kernel(flag: Any) -> None:
        turns = 0
        while tl.load(flag, volatile=True) == 0:
            turns += 1

    with pytest.raises(DeadlockError, match="32 times"):
        run(kernel, 1)


def test_a_loop_that_counts_and_does_not_say_that_it_polls_runs_to_its_limit() -> None:
    def kernel(flag: Any) -> None:
        turns = 0
        while tl.load(flag) == 0:
            turns += 1

    with RuntimeContext("ahbm-small", limits=Limits(commands=2000)) as torch:
        flag = torch.zeros(1, "i32", dp=DPPolicy(num_sips=1))
        with pytest.raises(LimitError, match=r"test_poll\.py:\d+ in kernel.*limit on commands"):
            torch.launch(kernel, flag)


# -- what still may succeed ------------------------------------------------------------------------


@every_engine
def test_a_program_that_only_reads_for_long_may_still_write(kind: EngineKind) -> None:
    def kernel(words: Any) -> None:
        if tl.program_id(0) == 0:
            while tl.atomic_load(words) == 0:
                pass
        else:
            for _ in range(500):
                if tl.load(words + 1) != 0:
                    break
            tl.store(words, 7)

    assert run(kernel, engine=kind)[0] == 7


@every_engine
def test_a_store_that_is_under_way_ends_a_poll(kind: EngineKind) -> None:
    """Both programs poll near themselves while a long store goes from one to the other."""
    words = 2**14

    def kernel(near: Any, far: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(far + tl.arange(0, words), tl.full((words,), 1, tl.int32))
            while tl.load(near) == 0:
                pass
        else:
            while tl.load(far) == 0:
                pass
            tl.store(near, 1)

    bed = Bed(num_pes=2, engine=kind)
    near = bed.workspace.place(np.zeros(1, np.int32), bed.pes[:1])
    far = bed.workspace.place(np.zeros(words, np.int32), bed.pes[1:])
    bed.launch(kernel, near, far, grid=(2,))
    assert bed.read(near)[0] == 1


@every_engine
def test_a_message_that_is_under_way_ends_a_poll(kind: EngineKind) -> None:
    def kernel(flag: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.zeros((4096,), tl.float32))
            while tl.load(flag) == 0:
                pass
        else:
            tl.recv("W", (4096,), tl.float32)
            tl.store(flag, 1)

    assert run(kernel, engine=kind)[0] == 1


def test_a_request_of_the_host_that_is_under_way_keeps_a_poll_going() -> None:
    """The host's launch is on its way to its PE while the first polls."""

    def poll_flag(flag: Any) -> None:
        while tl.load(flag) == 0:
            pass

    def set_flag(flag: Any) -> None:
        tl.store(flag, 1)

    with RuntimeContext("ahbm-small") as torch:
        one, other = list(torch.machine.grid.pes())[:2]
        flag = torch.zeros(1, "i32", dp=DPPolicy(pe="column_wise"))
        polling = torch.launch(poll_flag, flag, on=[one], wait=False)
        torch.launch(set_flag, flag, on=[other], wait=False)
        polling.wait()


def test_polls_between_which_something_is_written_go_on() -> None:
    def kernel(words: Any) -> None:
        for _ in range(200):
            if tl.atomic_load(words) != 0:
                break
            tl.atomic_add(words + 1, 1)

    assert run(kernel, 1)[1] == 200


def test_a_flag_that_goes_to_and_fro_is_polled_as_often_as_it_takes() -> None:
    def kernel(flag: Any) -> None:
        here = tl.program_id(0)
        for turn in range(40):
            while tl.atomic_load(flag) != 2 * turn + here:
                pass
            tl.atomic_store(flag, 2 * turn + here + 1)

    assert run(kernel)[0] == 80


def count_in_a_list(flag: Any, seen: list[int]) -> None:
    while tl.load(flag) == 0 and len(seen) < 100:
        seen.append(1)


def test_what_a_loop_remembers_in_a_list_or_an_object_is_not_overlooked() -> None:
    def kernel(flag: Any) -> None:
        seen: list[int] = []
        count_in_a_list(flag, seen)
        turns = iter(range(100))
        while tl.load(flag) == 0 and next(turns, 99) < 99:
            pass
        tl.store(flag, len(seen))

    assert run(kernel, 1)[0] == 100


def test_a_loop_over_an_iterator_that_repeats_itself_may_be_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its state is hidden from Python, so a few turns say nothing."""
    monkeypatch.setattr(poll, "FIRST_WAITS", FIRST_WAITS)

    def kernel(flag: Any) -> None:
        for _ in repeat(None, 2 * FIRST_WAITS - 2):
            if tl.load(flag) != 0:
                break
        tl.store(flag, 5)

    assert run(kernel, 1)[0] == 5
