"""When a kernel fails: the time at which its program would be there, however far it ran ahead."""

import gc
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import KernelError, PageFaultError
from tilewright.executor.program import Program

SIZE = 4096
ROUNDS = 20
ROUND_PS = SIZE // 512 * 4 * 1000  # exp: four cycles of 1 ns a pass over 512 lanes
ISSUE_PS = 2_000  # of one command

Fail = Callable[[Any, Any, int], None]  # the pointer, a loaded number, and what it is


def known_late(x_ptr: Any) -> Any:
    """A number that follows from what has been read, long before it is there."""
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    int(tl.load(x_ptr))  # waits: from here on x has been read
    for _ in range(ROUNDS):
        x = tl.exp(x)
        x = x * 0.0
    return tl.sum(x, 0)


def asserts(_: Any, late: Any, __: int) -> None:
    tl.device_assert(late > 1.0, "late")


def reads_beyond(x_ptr: Any, _: Any, number: int) -> None:
    tl.load(x_ptr + 10**6 + number)


def divides(_: Any, __: Any, number: int) -> None:
    _ = 1 // number


def has_no_such_shape(_: Any, late: Any, __: int) -> None:
    tl.reshape(late, (3, 3))


FAILURES: dict[str, tuple[Fail, type[Exception]]] = {
    "an assertion": (asserts, KernelError),
    "a page fault": (reads_beyond, PageFaultError),
    "an error of Python": (divides, ZeroDivisionError),
    "a call that is refused": (has_no_such_shape, KernelError),
}


def failing_ps(kind: EngineKind, kernel: Any, error: type[Exception]) -> int:
    """The time that the error of a kernel names."""
    bed = Bed(engine=kind)
    with pytest.raises(error) as caught:
        bed.launch(kernel, bed.place(np.zeros(SIZE, np.float32)))
    notes = getattr(caught.value, "__notes__", [])
    text = "\n".join([str(caught.value), *notes])
    (found,) = re.findall(r"at (\d+) ps", text)
    return int(found)


@every_engine
@pytest.mark.parametrize("name", FAILURES)
def test_an_error_names_the_time_at_which_the_value_before_it_is_there(
    kind: EngineKind, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail, error = FAILURES[name]

    def kernel(x_ptr: Any) -> None:
        late = known_late(x_ptr)
        fail(x_ptr, late, int(late))

    ahead_ps = failing_ps(kind, kernel, error)
    assert ahead_ps > ROUNDS * ROUND_PS
    monkeypatch.setattr(Program, "runs_ahead", False)
    assert failing_ps(kind, kernel, error) == ahead_ps


@every_engine
def test_an_error_behind_commands_names_the_time_at_which_they_are_issued(
    kind: EngineKind,
) -> None:
    def kernel(x_ptr: Any) -> None:
        for _ in range(10):
            tl.load(x_ptr)
        tl.static_assert(False, "behind ten loads")

    assert failing_ps(kind, kernel, KernelError) == 10 * ISSUE_PS


@every_engine
def test_an_error_of_a_program_is_behind_the_programs_before_it(kind: EngineKind) -> None:
    ends: list[int] = []

    def first(x_ptr: Any) -> None:
        tl.store(x_ptr, known_late(x_ptr))

    def both(x_ptr: Any) -> None:
        if tl.program_id(0) == 1:
            tl.static_assert(False, "in the second program")
        first(x_ptr)

    for kernel, grid in ((first, (1,)), (both, (2,))):
        bed = Bed(engine=kind)
        x = bed.place(np.zeros(SIZE, np.float32))
        if kernel is first:
            ends.append(bed.launch(kernel, x, grid=grid).end_ps)
            continue
        with pytest.raises(KernelError, match=r"program \(1,\) .*, at (\d+) ps") as caught:
            bed.launch(kernel, x, grid=grid)
        ends.append(int(re.findall(r"at (\d+) ps", str(caught.value))[0]))
    assert ends[0] == ends[1]


@every_engine
def test_an_error_in_the_first_line_is_at_the_beginning(kind: EngineKind) -> None:
    def kernel(_: Any) -> None:
        tl.static_assert(False, "at once")

    assert failing_ps(kind, kernel, KernelError) == 0


@every_engine
def test_the_program_that_would_fail_first_is_the_one_that_is_told(kind: EngineKind) -> None:
    """Programs run ahead one after the other, but fail in the order of time."""

    def kernel(x_ptr: Any) -> None:
        if tl.program_id(0) == 0:
            tl.device_assert(known_late(x_ptr) > 1.0, "late")
        tl.device_assert(tl.load(x_ptr) > 1.0, "early")

    bed = Bed(engine=kind, num_pes=2)
    with pytest.raises(KernelError, match=r"program \(1,\) .* device_assert failed: early"):
        bed.launch(kernel, bed.place(np.zeros(SIZE, np.float32)), grid=(2,))


@every_engine
def test_an_error_is_gone_with_its_last_holder(kind: EngineKind) -> None:
    """Nothing that it keeps, the device among it, keeps it: no collection is needed."""

    def kernel(x_ptr: Any) -> None:
        tl.load(x_ptr)
        tl.static_assert(False, "behind a load")

    bed = Bed(engine=kind)
    x = bed.place(np.zeros(1, np.float32))
    gc.disable()
    try:
        with pytest.raises(KernelError) as caught:
            bed.launch(kernel, x)
        error = weakref.ref(caught.value)
        del caught
        assert error() is None
    finally:
        gc.enable()


@every_engine
def test_an_error_that_the_kernel_catches_names_no_time(kind: EngineKind) -> None:
    caught: list[str] = []

    def kernel(x_ptr: Any) -> None:
        try:
            tl.static_assert(False, "caught")
        except KernelError as error:
            caught.append(str(error))
        tl.store(x_ptr, 1.0)

    bed = Bed(engine=kind)
    x = bed.place(np.zeros(1, np.float32))
    bed.launch(kernel, x)
    assert bed.read(x)[0] == 1
    assert "in kernel, program (0,) of kernel on sip0.cube0.pe0: found" in caught[0]
