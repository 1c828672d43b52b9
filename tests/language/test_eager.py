"""Combine functions of reductions and scans, written in the language."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.errors import KernelError

X = np.random.default_rng(7).integers(-50, 50, (8, 16)).astype(np.int32)


def run(function: Callable[[Any], Any], size: int) -> Array:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
        found = function(x)
        tl.store(out_ptr + tl.arange(0, size), tl.reshape(found, [size]))

    bed = Bed()
    out = bed.place(np.zeros(size, np.int32))
    bed.launch(kernel, bed.place(X), out)
    return bed.read(out)


def larger(a: Any, b: Any) -> Any:
    return tl.where(a > b, a, b)


def test_a_reduction_calls_the_function_on_blocks() -> None:
    np.testing.assert_array_equal(run(lambda x: tl.reduce(x, 1, larger), 8), X.max(1))


def test_a_scan_may_use_numbers_and_functions_of_the_language() -> None:
    def clipped_sum(a: Any, b: Any) -> Any:
        return tl.minimum(a + b + 0, tl.full([], 10**6, tl.int32))

    found = run(lambda x: tl.associative_scan(x, 1, clipped_sum), 128)
    np.testing.assert_array_equal(found, np.cumsum(X, 1).reshape(-1))


def test_several_operands_reduce_together() -> None:
    def best(value: Any, place: Any, other: Any, other_place: Any) -> Any:
        is_better = (value > other) | ((value == other) & (place < other_place))
        return tl.where(is_better, value, other), tl.where(is_better, place, other_place)

    def function(x: Any) -> Any:
        places = tl.broadcast_to(tl.arange(0, 16)[None, :], [8, 16])
        values, found = tl.reduce((x, places), 1, best)
        return values * 100 + found

    np.testing.assert_array_equal(run(function, 8), X.max(1) * 100 + X.argmax(1))


@pytest.mark.parametrize(
    "reach",
    [
        lambda x_ptr, _: tl.load(x_ptr),
        lambda x_ptr, a: tl.store(x_ptr, a),
        lambda x_ptr, _: tl.atomic_add(x_ptr, 1),
        lambda x_ptr, _: tl.atomic_load(x_ptr),
        lambda x_ptr, _: tl.atomic_store(x_ptr, 1),
        lambda x_ptr, _: tl.load(x_ptr, volatile=True),
        lambda x_ptr, _: tl.composite("abs", tl.ref(x_ptr, (4, 4))),
        lambda _, a: tl.send("E", a),
        lambda *_: tl.recv("E", (4,), tl.int32),
        lambda *_: tl.recv_no_consume("E", (4,), tl.int32),
    ],
)
def test_a_combine_function_cannot_reach_memory_or_messages(reach: Callable[..., Any]) -> None:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        def combine(a: Any, b: Any) -> Any:
            reach(x_ptr, a)
            return a + b

        x = tl.load(x_ptr + tl.arange(0, 16))
        tl.store(out_ptr, tl.reduce(x, 0, combine))

    bed = Bed()
    with pytest.raises(KernelError, match=": found a combine function that uses memory"):
        bed.launch(kernel, bed.place(X), bed.place(X))


def test_a_combine_function_knows_its_place_and_may_reduce_itself() -> None:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        def combine(a: Any, b: Any) -> Any:
            both = tl.join(a, b)
            place = tl.program_id(0) + tl.num_programs("pe") + tl.num_programs(1)
            return tl.reduce(both, -1, lambda c, d: c + d) + place

        x = tl.load(x_ptr + tl.arange(0, 16))
        tl.store(out_ptr + tl.program_id(0), tl.reduce(x, 0, combine))

    bed = Bed(num_pes=2)
    x, out = bed.place(X), bed.place(np.zeros(2, np.int32))
    bed.launch(kernel, x, out, grid=(2,))
    reductions = 15  # of 16 elements
    np.testing.assert_array_equal(bed.read(out) - X[0].sum(), [reductions * n for n in (3, 4)])


def test_a_call_outside_of_a_kernel_is_refused() -> None:
    with pytest.raises(KernelError, match="a call outside of a kernel"):
        tl.arange(0, 4)
