"""Functions of the library that compiled code repeats: the same commands, values and times."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import KernelError

SIDE = 4
SIZE = SIDE * SIDE

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "elements": lambda x, y, _: tl.exp(x) + tl.abs(y),
    "extremes": lambda x, y, n: tl.maximum(x, y) - tl.minimum(y, x) + tl.maximum(n, x),
    "one block twice": lambda x, y, _: tl.maximum(x, x) + tl.maximum(x, y) - tl.minimum(y, y),
    "choices": lambda x, y, n: tl.where(x > y, x, n) + tl.where(x > n, y, x),
    "signs of zero": lambda x, y, _: 1.0 / tl.where(x > y, 0.0, x) + 1.0 / tl.where(x > y, -0.0, x),
    "by name": lambda x, y, _: tl.sum(x, 0, keep_dims=True) + tl.max(y, axis=1, keep_dims=True),
    "axes": lambda x, y, _: tl.sum(x, 0)[None, :] + tl.sum(y, 1)[:, None],
    "shapes": lambda x, y, _: tl.trans(tl.reshape(x, (2, 8))).reshape(SIDE, -1) + tl.trans(y),
    "products": lambda x, y, _: tl.dot(tl.dot(x, tl.trans(y)), x, y) + tl.dot(y, y),
    "transposed in place": lambda x, y, _: tl.dot(x.T, tl.permute(y, (1, 0))) + tl.dot(y, x.T),
    "transposed for others": lambda x, y, n: used_twice(tl.trans(x), y) * n + used_twice(y.T.T, x),
    "dtypes": lambda x, y, n: x.to(tl.float16).to(tl.float32) * n + y.to(tl.int32),
    "several results": lambda x, y, _: tl.join(*tl.split(tl.reshape(x, 8, 2))).reshape(x.shape) + y,
}


def used_twice(x: Any, other: Any) -> Any:
    """By products, before and behind somebody else."""
    return tl.dot(x, other) + x + tl.dot(other, x, x)


def run_calls(bed: Bed, names: list[str], numbers: list[Any]) -> tuple[Any, ...]:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        places = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
        x, y = tl.load(x_ptr + places), tl.load(x_ptr + places + SIZE)
        for turn, number in enumerate(numbers):
            for name in names:
                x, y = CALLS[name](x, y, number) * 0.25, x
                tl.store(out_ptr + turn * SIZE + places, x)

    values = np.linspace(-2, 2, 2 * SIZE, dtype=np.float32)
    x, out = bed.place(values), bed.place(np.zeros(len(numbers) * SIZE, np.float32))
    result = bed.launch(kernel, x, out)
    found = bed.read(out)
    bed.workspace.free(x)
    bed.workspace.free(out)
    return found.tobytes(), result.latency_ps, result.counters


@pytest.fixture(scope="module")
def beds() -> list[Bed]:
    return [Bed(engine=kind) for kind in (EngineKind.REFERENCE, EngineKind.NATIVE)]


@needs_both_engines
@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=4),
    st.lists(st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, 2.5]), min_size=2, max_size=4),
)
def test_calls_that_come_again_are_the_same_commands(
    beds: list[Bed], names: list[str], numbers: list[Any]
) -> None:
    reference, native = (run_calls(bed, names, numbers) for bed in beds)
    assert native == reference


@needs_both_engines
def test_a_repeated_call_needs_no_frame_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    total: Any = tl.sum
    library: Any = inspect.getmodule(total.__wrapped__)
    defined = library.carry_out

    def listening(*args: Any) -> Any:
        asked.append(args)
        return defined(*args)

    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, 8))
        for place in range(5):
            tl.store(out_ptr + place, total(x * place, 0))

    monkeypatch.setattr(library, "carry_out", listening)
    bed = Bed(engine=EngineKind.NATIVE)
    x, out = bed.place(np.arange(8.0)), bed.place(np.zeros(5))
    bed.launch(kernel, x, out)
    assert bed.read(out).tolist() == [0, 28, 56, 84, 112]
    assert len(asked) == 1


def test_a_call_that_is_refused_is_refused_again() -> None:
    def kernel(x_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, 8))
        for _ in range(2):
            with pytest.raises(KernelError, match="as many elements"):
                tl.reshape(x, (3, 3))

    bed = Bed()
    bed.launch(kernel, bed.place(np.arange(8.0)))


def test_a_call_outside_of_a_kernel_is_refused() -> None:
    kept: list[Any] = []
    bed = Bed()
    bed.launch(lambda x_ptr: kept.append(tl.load(x_ptr)), bed.place(np.arange(8.0)))
    with pytest.raises(KernelError, match="outside of a kernel"):
        tl.exp(kept[0])


def test_a_function_is_known_by_its_name_words_and_parameters() -> None:
    assert tl.dot.__name__ == "dot"
    assert tl.dot.__doc__ == "The product of two matrices, added to ``acc`` if there is one."
    assert list(inspect.signature(tl.dot).parameters)[:3] == ["input", "other", "acc"]


def test_a_function_of_the_language_is_an_argument_of_a_kernel() -> None:
    def kernel(x_ptr: Any, activation: Any) -> None:
        tl.store(x_ptr, activation(tl.load(x_ptr)))

    bed = Bed()
    x = bed.place(np.array([-3.0]))
    bed.launch(kernel, x, tl.abs)
    assert bed.read(x).tolist() == [3.0]
