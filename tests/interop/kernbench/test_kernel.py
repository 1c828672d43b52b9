"""Arguments of a kernel of KernBench: which parameter gets what."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interop.kernbench.language.bed import launch, place
from tilewright.errors import KernelError
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.kernel import kernel_of
from tilewright.interop.kernbench.language.context import TLContext


def in_the_middle(a: Any, tl: Any, b: Any = 7, c: Any = 8) -> None: ...
def last_of_another_name(a: Any, b: Any, ctx: Any) -> None: ...
def sizes(a_ptr: Any, M: Any, K: Any, N: Any, tl: Any, DTYPE: Any = "f16") -> None: ...  # noqa: N803


def bound(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    found = kernel_of(kernel).bind(args, kwargs)
    return {name: value for name, value in found.items() if not isinstance(value, TLContext)}


def test_positional_arguments_skip_tl_wherever_it_stands() -> None:
    assert bound(in_the_middle, 1, 2) == {"a": 1, "b": 2, "c": 8}
    assert bound(sizes, 1, 2, 3, 4, "f32") == {"a_ptr": 1, "M": 2, "K": 3, "N": 4, "DTYPE": "f32"}


def test_without_a_tl_the_last_parameter_gets_the_language() -> None:
    found = kernel_of(last_of_another_name).bind((1, 2), {})
    assert isinstance(found["ctx"], TLContext)
    assert (found["a"], found["b"]) == (1, 2)


@given(data=st.data(), values=st.lists(st.integers(), min_size=4, max_size=4))
def test_any_split_into_positions_and_names_binds_the_same(
    data: st.DataObject, values: list[int]
) -> None:
    names = ["a_ptr", "M", "K", "N"]
    count = data.draw(st.integers(0, 4))
    order = data.draw(st.permutations(range(count, 4)))
    named = {names[number]: values[number] for number in order}
    assert bound(sizes, *values[:count], **named) == {
        **dict(zip(names, values, strict=True)),
        "DTYPE": "f16",
    }


SIGNATURE = "sizes(a_ptr: Any, M: Any, K: Any, N: Any, DTYPE: Any = 'f16')"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2, 3), {}, f"missing a required argument: 'N', expected arguments for {SIGNATURE}"),
        ((1, 2, 3, 4, "f16", 6, 7), {}, "too many positional arguments"),
    ],
)
def test_wrong_arguments_are_refused_with_the_kernel_and_its_parameters(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(KernelError, match="^kernel 'sizes': found .*" + re.escape(message)):
        kernel_of(sizes).bind(args, kwargs)


def no_parameter() -> None: ...


@pytest.mark.parametrize(("function", "message"), [
    (no_parameter, "a function without parameters, expected one that takes tl"),
    (3, "kernel 'int': found 3, expected a function with a parameter tl"),
])  # fmt: skip
def test_what_is_no_kernel_is_refused(function: Any, message: str) -> None:
    with pytest.raises(KernelError, match=re.escape(message)):
        kernel_of(function)


def test_addresses_and_numbers_are_pythons_own() -> None:
    seen: list[Any] = []

    def kernel(a_ptr: Any, n: Any, scale: Any, tl: Any, on: Any = None) -> None:
        seen.append([type(value) for value in (a_ptr, n, scale, on)])
        seen.append((-7 % n, -7 // n, type(tl.program_id(0))))

    with RuntimeContext("ahbm-small") as torch:
        launch(torch, kernel, place(torch, np.zeros(4, np.float16)), 2, 0.5, name="named")
    assert seen == [[int, int, float, type(None)], (1, -4, int)]


class Kernels:
    """Kernels that are no plain functions."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def method(self, n: int, tl: Any, dtype: str = "f16") -> None:
        self.seen.append((n, dtype, tl.full((2,), n, dtype).data.tolist()))

    def __call__(self, n: int, tl: Any) -> None:
        self.method(n, tl)


def test_methods_partials_and_callable_objects_are_kernels_too() -> None:
    kernels = Kernels()
    with RuntimeContext("ahbm-small") as torch:
        launch(torch, kernels.method, 3)
        launch(torch, partial(kernels.method, dtype="f32"), 4)
        launch(torch, partial(kernels.method, 5))
        launch(torch, kernels, 6)
    assert kernels.seen == [
        (3, "f16", [3.0, 3.0]),
        (4, "f32", [4.0, 4.0]),
        (5, "f16", [5.0, 5.0]),
        (6, "f16", [6.0, 6.0]),
    ]
