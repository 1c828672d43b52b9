from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.executor.stream import Stream


def run(kernel: Any, *values: Any) -> None:
    bed = Bed()
    bed.launch(kernel, *map(bed.place, values))


def test_an_assertion_that_fails_says_its_message_and_its_line() -> None:
    def kernel(x_ptr: Any) -> None:
        tl.device_assert(tl.load(x_ptr + tl.arange(0, 4)) > 0, "positive")

    run(kernel, np.ones(4, np.float32))
    with pytest.raises(KernelError, match="device_assert failed: positive") as caught:
        run(kernel, np.array([1, 1, 0, 1], np.float32))
    assert f"{__file__}:" in caught.value.where


def test_an_assertion_looks_only_where_its_mask_does() -> None:
    def kernel(x_ptr: Any) -> None:
        n = tl.arange(0, 4)
        tl.device_assert(tl.load(x_ptr + n) > 0, "positive", mask=n < 2)

    run(kernel, np.array([1, 1, 0, 1], np.float32))


def test_a_static_assertion_needs_no_value() -> None:
    with pytest.raises(KernelError, match="static_assert failed: too many"):
        run(lambda: tl.static_assert(2 > 3, "too many"))


def test_assembler_is_refused() -> None:
    with pytest.raises(KernelError, match="found assembler, expected functions of tl"):
        run(lambda: tl.inline_asm_elementwise("add", "=r", [], tl.int32, True, 1))


@pytest.mark.parametrize(("n", "power"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128)])
def test_the_next_power_of_two_is_the_least(n: int, power: int) -> None:
    found: list[int] = []
    run(lambda: found.append(tl.next_power_of_2(n)))
    assert found == [power]


def test_loops_count_as_pythons_do() -> None:
    found: list[list[int]] = []

    def kernel(x_ptr: Any) -> None:
        end = tl.load(x_ptr)
        found.append(list(tl.range(end)))
        found.append(list(tl.range(1, end, 2, num_stages=3)))
        found.append(list(tl.static_range(end, 0, -2)))

    run(kernel, np.array([5], np.int32))
    assert found == [[0, 1, 2, 3, 4], [1, 3], [5, 3, 1]]


def test_a_program_that_waits_says_for_what_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    wait = Stream.wait

    def listening(stream: Stream, task: int, what: Callable[[], str]) -> None:
        told.append(what())
        wait(stream, task, what)

    monkeypatch.setattr(Stream, "wait", listening)

    def kernel(x_ptr: Any) -> None:
        if tl.load(x_ptr) > 0:
            tl.store(x_ptr, 2.0)

    run(kernel, np.ones(1, np.float32))
    (what,) = told
    assert what.startswith("program (0,) of kernel on sip0.cube0.pe0 waits for int1[] at ")
    assert f"{__file__}:" in what
    assert what.endswith("in kernel")


def test_a_block_of_several_elements_decides_nothing() -> None:
    def kernel(x_ptr: Any) -> None:
        if tl.load(x_ptr + tl.arange(0, 4)) > 0:
            tl.store(x_ptr, 2.0)

    with pytest.raises(KernelError, match=r"a block of shape \(4,\) where Python needs one number"):
        run(kernel, np.ones(4, np.float32))
