"""Values and dtypes of arithmetic, against NumPy in float64."""
# ruff: noqa: ARG005  # every body gets the language and both operands

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.interop.kernbench.language.bed import Array, launch, run
from tilewright.host import RuntimeContext

STORAGES: dict[str, Any] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "i32": np.dtype(np.int32),
}
TEXTS = {storage: text for text, storage in STORAGES.items()}
HALF_ULP = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": np.vectorize(math.erf),
    "exp": np.exp,
    "exp2": np.exp2,
    "floor": np.floor,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}
RNG = np.random.default_rng(3)


def normal(dtype: str, *shape: int) -> Array:
    return RNG.normal(size=shape).astype(STORAGES[dtype])


def computed(body: Callable[..., Any], x: Array, y: Array, out: Array) -> tuple[Array, str]:
    """Return what ``body(tl, x, y)`` gives on one PE, in float64, and the text of its dtype."""
    found: list[str] = []

    def kernel(x_ptr: int, y_ptr: int, out_ptr: int, tl: Any) -> None:
        handles = (tl.load(x_ptr, x.shape, TEXTS[x.dtype]), tl.load(y_ptr, y.shape, TEXTS[y.dtype]))
        result = body(tl, *handles)
        assert result.shape == out.shape
        found.append(result.dtype)
        tl.store(out_ptr, result)

    return run(kernel, x, y, out).astype(np.float64), found[0]


def check(
    dtype: str, body: Callable[..., Any], exact: Array, x: Array, y: Array, slack: float = 1.01
) -> None:
    """The dtype is kept, and the result is the exact one rounded once, but for f32's own error."""
    out, text = computed(body, x, y, np.zeros(exact.shape, STORAGES[dtype]))
    assert text == dtype
    scale = np.maximum(np.abs(exact), 2.0**-14)  # f16 has no smaller normal number
    error = (np.abs(out - exact) / scale).max()
    assert error <= slack * HALF_ULP[dtype] + 2.0**-20


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_every_function_of_elements_keeps_its_dtype_and_rounds_once(dtype: str) -> None:
    x = np.abs(normal(dtype, len(FUNCTIONS), 64)) + STORAGES[dtype].type(0.25)

    def body(tl: Any, x: Any, _: Any) -> Any:
        rows = tl.arange(len(FUNCTIONS))[:, None]
        result = x
        for number, name in enumerate(FUNCTIONS):
            result = tl.where(rows == number, getattr(tl, name)(x), result)
        return result

    wide = x.astype(np.float64)
    exact = np.stack([function(wide[i]) for i, function in enumerate(FUNCTIONS.values())])
    out, text = computed(body, x, x, np.zeros(x.shape, STORAGES[dtype]))
    assert text == dtype
    error = np.abs(out - exact) - 1.01 * HALF_ULP[dtype] * np.abs(exact)
    assert error.max() <= 2.0**-20  # where a function is near zero, f32 has an error of its own


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_operators_between_handles_and_numbers_keep_the_dtype(dtype: str) -> None:
    x, y = normal(dtype, 8, 64), np.abs(normal(dtype, 8, 64)) + STORAGES[dtype].type(1)
    a, b = x.astype(np.float64), y.astype(np.float64)
    check(dtype, lambda tl, x, y: x + y, a + b, x, y)
    check(dtype, lambda tl, x, y: x - y, a - b, x, y)
    check(dtype, lambda tl, x, y: 2 - x, 2 - a, x, y)
    check(dtype, lambda tl, x, y: 0.5 * x, 0.5 * a, x, y)
    check(dtype, lambda tl, x, y: x / y, a / b, x, y)
    check(dtype, lambda tl, x, y: x / 2, a / 2, x, y)
    check(dtype, lambda tl, x, y: 2 / y, 2 / b, x, y)
    check(dtype, lambda tl, x, y: tl.fma(x, y, 1.0), a * b + 1, x, y)
    check(dtype, lambda tl, x, y: tl.clamp(x, -0.5, 0.5), np.clip(a, -0.5, 0.5), x, y)
    check(dtype, lambda tl, x, y: tl.maximum(x, 0.0), np.maximum(a, 0), x, y)
    check(dtype, lambda tl, x, y: tl.minimum(x, y), np.minimum(a, b), x, y)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_reductions_keep_the_axis_and_the_dtype(dtype: str) -> None:
    x = np.abs(normal(dtype, 8, 64))
    a = x.astype(np.float64)
    check(dtype, lambda tl, x, _: tl.sum(x, axis=1), a.sum(1, keepdims=True), x, x, 1.1)
    check(dtype, lambda tl, x, _: tl.max(x, -1), a.max(1, keepdims=True), x, x)
    check(dtype, lambda tl, x, _: tl.min(x), a.min(keepdims=True), x, x)
    check(dtype, lambda tl, x, _: tl.max(x, 0, keepdims=False), a.max(0), x, x)
    powers = np.exp(a - a.max(1, keepdims=True))
    exact = powers / powers.sum(1, keepdims=True)
    check(dtype, lambda tl, x, _: tl.softmax(x), exact, x, x, 1.1)


@pytest.mark.parametrize(("left", "right", "wider"), [
    ("f16", "f32", "f32"), ("bf16", "f32", "f32"), ("f32", "f16", "f32"), ("i32", "f16", "f16"),
])  # fmt: skip
def test_two_dtypes_meet_in_the_wider_one(left: str, right: str, wider: str) -> None:
    x = RNG.integers(1, 9, (16, 16)).astype(STORAGES[left])
    y = RNG.integers(1, 9, (16, 16)).astype(STORAGES[right])
    a, b = x.astype(np.float64), y.astype(np.float64)
    check(wider, lambda tl, x, y: x * y, a * b, x, y)
    check(wider, lambda tl, x, y: x / y, a / b, x, y)
    check(wider, lambda tl, x, y: tl.dot(x, y), a @ b, x, y)


@settings(max_examples=20, deadline=None)
@given(
    dtype=st.sampled_from(["f16", "bf16", "f32"]),
    sizes=st.tuples(*[st.integers(1, 40)] * 3),
    transposed=st.booleans(),
)
def test_a_product_is_added_up_in_f32_and_rounded_once(
    dtype: str, sizes: tuple[int, int, int], transposed: bool
) -> None:
    """Whole numbers that f32 adds up exactly: what is off is the one rounding."""
    m, k, n = sizes
    x = RNG.integers(-8, 9, (m, k)).astype(STORAGES[dtype])
    y = RNG.integers(-8, 9, (n, k) if transposed else (k, n)).astype(STORAGES[dtype])
    exact = x.astype(np.float64) @ (y.T if transposed else y).astype(np.float64)

    def body(tl: Any, x: Any, y: Any) -> Any:
        return tl.dot(x, tl.trans(y) if transposed else y)

    out, text = computed(body, x, y, np.zeros((m, n), STORAGES[dtype]))
    assert text == dtype
    assert np.array_equal(out, exact.astype(STORAGES[dtype]).astype(np.float64))


def test_a_transposed_tensor_has_transposed_values() -> None:
    x = normal("f16", 8, 16)
    check("f16", lambda tl, x, _: tl.trans(x), x.T.astype(np.float64), x, x)


def test_integers_divide_and_wrap_as_pythons() -> None:
    x = np.arange(-8, 8, dtype=np.int32)

    def body(tl: Any, x: Any, _: Any) -> Any:
        assert (x / 2).dtype == "f32"
        return (x // 3) * 100 + x % 3 + tl.cdiv(x, 4)

    out, text = computed(body, x, x, np.zeros(16, np.int32))
    assert text == "i32"
    assert out.tolist() == [v // 3 * 100 + v % 3 + -(-v // 4) for v in range(-8, 8)]


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "7 // y": lambda x, y: 7 // y,
    "7 % y": lambda x, y: 7 % y,
    "1 + x": lambda x, y: 1 + x,
    "-x": lambda x, y: -x,
    "x < y": lambda x, y: x < y,
    "x <= y": lambda x, y: x <= y,
    "x > y": lambda x, y: x > y,
    "x >= 2": lambda x, y: x >= 2,
    "x == y": lambda x, y: x == y,
    "x != y": lambda x, y: x != y,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_what_numpy_gives(name: str) -> None:
    x, y = np.arange(-8, 8, dtype=np.int32), np.tile(np.array([-3, 1, 2, 5], np.int32), 4)
    operate = OPERATORS[name]

    def body(tl: Any, x: Any, y: Any) -> Any:
        found = operate(x, y)
        return tl.where(found, 1, 0) if found.dtype == "bool" else found

    out, _ = computed(body, x, y, np.zeros(16, np.int32))
    assert out.tolist() == operate(x, y).astype(np.int32).tolist()


def test_numbers_of_python_stay_numbers_of_python() -> None:
    seen = []

    def kernel(tl: Any) -> None:
        seen.extend([tl.cdiv(7, 2), tl.maximum(3, 4), tl.minimum(0.5, 2)])

    with RuntimeContext("ahbm-small") as torch:
        launch(torch, kernel)
    assert seen == [4, 4, 0.5]
    assert [type(value) for value in seen] == [int, int, float]
