"""Cases in processes: all of them once, errors and endings as from one process."""

import multiprocessing
import os
import signal
from collections.abc import Callable

import pytest

from tilewright.errors import ProcessError, SpecError
from tilewright.processes import in_processes, num_cores


@pytest.mark.parametrize("num_processes", [1, 2, 9])
def test_each_case_has_its_result(num_processes: int) -> None:
    offset = 10  # a closure is known to processes without being pickled
    found = dict(in_processes(lambda case: case + offset, range(5), num_processes))
    assert found == {case: case + offset for case in range(5)}


def test_several_processes_work_and_none_is_left() -> None:
    barrier = multiprocessing.get_context("fork").Barrier(2)

    def met(_: int) -> int:
        barrier.wait(timeout=30)  # two cases are under way at once
        return os.getpid()

    found = {process for _, process in in_processes(met, range(2), 2)}
    assert len(found) == 2
    assert os.getpid() not in found
    assert not multiprocessing.active_children()


def test_no_cases_give_nothing() -> None:
    assert list(in_processes(str, [], 4)) == []


@pytest.mark.parametrize("num_processes", [1, 2])
def test_an_error_of_a_case_is_that_of_all(num_processes: int) -> None:
    def fail(case: int) -> int:
        if case == 3:
            raise SpecError("cube", "three", "another", "count anew")
        return case

    with pytest.raises(SpecError, match="cube: found three"):
        list(in_processes(fail, range(5), num_processes))
    assert not multiprocessing.active_children()


def sleeping(case: int) -> int:
    if case == 0:
        signal.pause()
    return case


def test_who_stops_listening_ends_the_processes() -> None:
    found = in_processes(sleeping, range(3), 2)
    assert next(found)[0] in (1, 2)
    found.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    "end",
    [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(0)],
    ids=["killed", "exited"],
)
def test_a_process_that_was_ended_is_told(end: Callable[[], None]) -> None:
    def ended(case: int) -> int:
        if case == 1:
            end()
        return case

    with pytest.raises(ProcessError, match="ended from outside"):
        list(in_processes(ended, range(3), 2))


def test_there_is_a_core() -> None:
    assert 1 <= num_cores() <= (os.cpu_count() or 1)
