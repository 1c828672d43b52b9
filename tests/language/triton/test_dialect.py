"""Programs that meant something else here than in Triton: what they give now, and the refusals."""

import sys
import traceback
from typing import Any

import numpy as np
import pytest
import triton  # type: ignore[import-untyped]
import triton.language as tl  # type: ignore[import-untyped]

from tests.language.bed import Array, Bed
from tilewright import language
from tilewright.errors import KernelError

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# ruff: noqa: ARG001, N803


def run(kernel: Any, x: Array, out: Array, *args: Any) -> Array:
    bed = Bed()
    placed = bed.place(out)
    bed.launch(kernel, bed.place(x), placed, *args)
    return bed.read(placed)


@triton.jit
def total(x_ptr, out_ptr, n):
    t = 0.0
    for i in range(n):
        t += tl.load(x_ptr + i)
    tl.store(out_ptr, t)


@triton.jit
def count(x_ptr, out_ptr, n):
    t = 0
    for i in range(n):
        t += tl.load(x_ptr + i)
    tl.store(out_ptr, t)


@triton.jit
def shifted(x_ptr, out_ptr):
    places = tl.arange(0, 4)
    k = 4
    for i in range(4, 5):
        tl.store(out_ptr + places, (tl.load(x_ptr + places) << k) + (tl.load(x_ptr + places) << i))


@triton.jit
def divided(x_ptr, out_ptr):
    for i in range(6):
        tl.store(out_ptr + i, (i - 3) // 2)
        tl.store(out_ptr + 6 + i, (i - 3) % 2)
    a = -7
    tl.store(out_ptr + 12, a // 2)
    tl.store(out_ptr + 13, a % 4)


@triton.jit
def hashed(x_ptr, out_ptr):
    h = 0x9747B28C
    tl.store(out_ptr, (h ^ tl.load(x_ptr)) >> 13)


def test_a_sum_of_float16_from_a_literal_is_a_float32() -> None:
    x = np.full(64, 2000, np.float16)
    assert run(total, x, np.zeros(1, np.float32), 64)[0] == 128_000


def test_a_sum_of_int8_from_a_literal_is_an_int32() -> None:
    x = np.array([100, 100, 102], np.int8)
    assert run(count, x, np.zeros(1, np.int32), 3)[0] == 302


def test_a_variable_and_an_index_make_a_narrow_block_int32() -> None:
    x = np.array([1, 100, 200, 255], np.uint8)
    found = run(shifted, x, np.zeros(4, np.int32))
    np.testing.assert_array_equal(found, x.astype(np.int32) * 32)


def test_division_of_indices_and_variables_goes_towards_zero() -> None:
    found = run(divided, np.zeros(1, np.int32), np.zeros(14, np.int32))
    assert found[:6].tolist() == [int((i - 3) / 2) for i in range(6)]
    assert found[6:12].tolist() == [int(np.fmod(i - 3, 2)) for i in range(6)]
    assert found[12:].tolist() == [-3, -3]


def test_a_number_beyond_int32_is_unsigned() -> None:
    found = run(hashed, np.array([7], np.int32), np.zeros(1, np.int64))
    assert found[0] == (0x9747B28C ^ 7) >> 13


def plain_division(out_ptr: Any, n: Any) -> None:
    pid, places = language.program_id(0), language.arange(0, 4)
    language.store(out_ptr, (pid - 1) % n)
    language.store(out_ptr + 1, (pid - 1) // n)
    language.store(out_ptr + 2 + places, (places - 2) % n)
    computed = language.load(out_ptr + places) * 0 + places - 2
    language.store(out_ptr + 6 + places, computed // n)
    language.store(out_ptr + 10 + places, computed % n)


def test_a_plain_kernel_divides_as_python_does_scalars_indices_and_blocks() -> None:
    bed = Bed()
    out = bed.place(np.zeros(14, np.int32))
    bed.launch(plain_division, out, 3)
    down, rest = [-1, -1, 0, 0], [1, 2, 0, 1]  # of -2, -1, 0, 1 by 3
    assert bed.read(out).tolist() == [2, -1, *rest, *down, *rest]


@triton.jit
def negative_part(value, n):
    return (value - 4) // n


def mixed(x_ptr: Any, out_ptr: Any) -> None:
    language.store(out_ptr, negative_part(language.program_id(0), 3))
    language.store(out_ptr + 1, (language.program_id(0) - 4) // 3)


def test_a_function_of_triton_keeps_its_meaning_in_a_plain_kernel() -> None:
    assert run(mixed, np.zeros(1, np.int32), np.zeros(2, np.int32)).tolist() == [-1, -2]


@triton.jit
def changing(x_ptr, out_ptr, n):
    t = 0
    for i in range(n):
        t += tl.load(x_ptr + i)
    tl.store(out_ptr, t)


def test_a_variable_that_a_loop_gives_another_type_is_refused_with_its_line() -> None:
    line = changing.fn.__code__.co_firstlineno + 3
    message = rf"test_dialect.py:{line} in changing.*found t, int32\[\] before the loop and"
    with pytest.raises(KernelError, match=message):
        run(changing, np.ones(2, np.float32), np.zeros(1, np.float32), 2)


@triton.jit
def too_large(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) + 300)


def test_a_literal_that_does_not_fit_the_block_is_refused() -> None:
    with pytest.raises(KernelError, match=r"300 beside tl.int8, expected a number that fits int8"):
        run(too_large, np.ones(1, np.int8), np.zeros(1, np.int32))


@triton.jit
def product(x_ptr, out_ptr, n):
    k = 65536
    tl.store(out_ptr, k * n)


def test_an_int32_variable_that_would_wrap_is_refused() -> None:
    with pytest.raises(KernelError, match=r"4294967296, expected a value that fits int32"):
        run(product, np.ones(1, np.int32), np.zeros(1, np.int64), 65_536)


@triton.jit
def backwards(x_ptr, out_ptr):
    step = -1
    for i in range(3, 0, step):
        tl.store(out_ptr, i)


def test_a_negative_step_that_a_variable_holds_is_refused() -> None:
    with pytest.raises(KernelError, match=r"the step -1, which a variable holds"):
        run(backwards, np.ones(1, np.int32), np.zeros(1, np.int64))


@triton.jit
def checked(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    assert x > 0, "all positive"
    assert not x > 100


def test_an_assertion_looks_at_every_element() -> None:
    run(checked, np.array([1, 2, 3, 4], np.int32), np.zeros(1, np.int32))
    with pytest.raises(KernelError, match="device_assert failed: all positive"):
        run(checked, np.array([1, 2, 0, 4], np.int32), np.zeros(1, np.int32))


@triton.jit
def constants(x_ptr, out_ptr, D: tl.constexpr, K: tl.constexpr):
    assert K == 4, "a constant"
    tl.store(out_ptr, tl.full([], K.value, D.value))


def test_a_constant_has_itself_as_its_value_and_python_asserts_it() -> None:
    out = np.zeros(1, np.int32)
    assert run(constants, out, out, triton.language.int32, 4)[0] == 4
    with pytest.raises(AssertionError, match="a constant"):
        run(constants, out, out, triton.language.int32, 5)


@triton.jit
def one(x_ptr, out_ptr, n):
    tl.store(out_ptr, tl.load(x_ptr) + n * 127)


def test_the_argument_1_is_a_constant_as_triton_compiles_it() -> None:
    x, out = np.array([1], np.int8), np.zeros(1, np.int32)
    assert run(one, x, out, 1)[0] == -128  # int8 + a literal
    assert run(one, x, out, 2)[0] == 255  # int8 + int32


@triton.jit
def failing(x_ptr, out_ptr):
    k = 3
    for i in range(2):
        k = k // (i - 1) if i else k
        tl.no_such_function(k)


def test_lines_of_a_traceback_are_the_authors() -> None:
    with pytest.raises(AttributeError) as caught:
        run(failing, np.zeros(1, np.int32), np.zeros(1, np.int32))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.name) == (__file__, "failing")
    assert last.line == "tl.no_such_function(k)"


def test_a_function_without_its_text_is_refused() -> None:
    source = "def kernel(x_ptr, out_ptr):\n    pass\n"
    names: dict[str, Any] = {}
    exec(compile(source, "<nowhere>", "exec"), names)
    kernel = triton.jit(total.fn)
    kernel.fn = names["kernel"]
    with pytest.raises(KernelError, match="found no source of it"):
        run(kernel, np.zeros(1, np.int32), np.zeros(1, np.int32))


def test_the_text_of_a_function_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run(total, np.zeros(2, np.float16), np.zeros(1, np.float32), 2)
    monkeypatch.setattr(sys.modules["inspect"], "getsourcelines", None)
    run(total, np.zeros(2, np.float16), np.zeros(1, np.float32), 2)


@triton.jit
def tree_sum(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    total = 0
    for i in tl.static_range(3):
        x = tl.sum(tl.reshape(x, (N >> (i + 1), 2)), axis=1)
        total = total + tl.sum(x, axis=0)
    tl.store(out_ptr + tl.arange(0, 1), x)
    tl.store(out_ptr + 1, total)


def test_an_unrolled_loop_may_change_types_and_shapes() -> None:
    x = np.arange(8, dtype=np.float32)
    found = run(tree_sum, x, np.zeros(2, np.float32), 8)
    assert found.tolist() == [28.0, 3 * 28.0]


def stops(x_ptr, out_ptr):
    language.store(out_ptr, language.load(x_ptr))
    yield


async def waits(x_ptr, out_ptr):
    language.store(out_ptr, language.load(x_ptr))


@pytest.mark.parametrize(("kernel", "word"), [(stops, "yield"), (waits, "async")])
def test_a_function_of_which_a_call_runs_nothing_is_no_kernel(kernel: Any, word: str) -> None:
    x = np.ones(1, np.float32)
    with pytest.raises(KernelError, match=f"found a function with {word}"):
        run(kernel, x, np.zeros(1, np.float32))


def names_a_dtype(x_ptr, out_ptr):
    address = language.cast(int(x_ptr), language.pointer_type("float32"))
    language.store(out_ptr, language.load(address))


def test_a_pointer_type_takes_the_name_of_a_dtype() -> None:
    assert run(names_a_dtype, np.ones(1, np.float32), np.zeros(1, np.float32)).tolist() == [1.0]
