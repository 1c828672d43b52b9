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


def test_processes_end_with_their_parent_however_it_ends() -> None:
    fork = multiprocessing.get_context("fork")
    reader, writer = os.pipe()  # whose end is read when nobody is left

    def told(_: int) -> None:
        os.write(writer, b".")
        signal.pause()

    parent = fork.Process(target=lambda: list(in_processes(told, range(2), 2)))
    parent.start()
    os.close(writer)
    with os.fdopen(reader, "rb", 0) as stream:
        begun = stream.read(1) + stream.read(1)
        parent.kill()
        parent.join()
        assert begun + stream.read(1) == b".."


def test_a_system_without_room_for_a_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    born: list[int] = []
    fork = os.fork

    def refuse_the_second() -> int:
        if born:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        born.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", refuse_the_second)
    with pytest.raises(ProcessError, match=r"could not begin \(Resource temporarily unavailable\)"):
        list(in_processes(str, range(3), 2))
    assert not multiprocessing.active_children()


class Unreadable:
    """Can be written, and not read."""

    def __reduce__(self) -> tuple[type[SpecError], tuple[int]]:
        return SpecError, (1,)


@pytest.mark.parametrize("num_cases", [2, 5000])
def test_a_result_that_cannot_be_read_is_told_with_its_reason(num_cases: int) -> None:
    with pytest.raises(ProcessError, match=r"cannot be read: TypeError: .* missing 3 required"):
        list(in_processes(lambda _: Unreadable(), range(num_cases), 2))


def test_there_is_a_core() -> None:
    assert 1 <= num_cores() <= (os.cpu_count() or 1)
