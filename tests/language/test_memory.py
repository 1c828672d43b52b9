"""What loads, stores and windows refuse, and the shapes that they give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.errors import KernelError

X = np.arange(64, dtype=np.float32)


def run(kernel: Any) -> np.ndarray[Any, Any]:
    bed = Bed()
    x = bed.place(X)
    bed.launch(kernel, x)
    return bed.read(x)


def vector(pointer: Any, count: int = 4) -> Any:
    return pointer + tl.arange(0, count)


WRONG: dict[str, Callable[[Any], Any]] = {
    "other without a mask": lambda x: tl.load(vector(x), other=1.0),
    r"a mask of int32\[4\]": lambda x: tl.load(vector(x), mask=tl.load(vector(x)).to(tl.int32)),
    r"values of shape \(4,\) with a single address": lambda x: tl.store(
        x, tl.load(vector(x)), mask=True
    ),
    r"a mask of shape \(4,\) with a single address": lambda x: tl.load(x, mask=tl.arange(0, 4) < 2),
    r"\(4,\) and \(3,\)": lambda x: tl.store(vector(x), tl.load(vector(x, 3))),
    "a mask with a block pointer": lambda x: tl.store(window(x), 1.0, mask=True),
    r"boundary_check \(2,\)": lambda x: tl.load(window(x), boundary_check=(2,)),
    r"the sizes \(8, 8\), \(8,\)": lambda x: tl.make_block_ptr(
        x, (8, 8), (8,), (0, 0), (4, 4), (1, 0)
    ),
    "1 offsets for 2 axes": lambda x: tl.advance(window(x), (1,)),
    "3 offsets for 2 axes": lambda x: described(x).load([0, 0, 0]),
    r"<Pointers .*> as the base": lambda x: tl.make_tensor_descriptor(
        vector(x), [8, 8], [8, 1], [4, 4]
    ),
}


def window(x: Any) -> Any:
    return tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))


def described(x: Any) -> Any:
    return tl.make_tensor_descriptor(x, [8, 8], [8, 1], [4, 4])


@pytest.mark.parametrize("found", WRONG)
def test_a_wrong_access_is_refused_with_its_line(found: str) -> None:
    with pytest.raises(KernelError, match=found) as caught:
        run(lambda x_ptr: WRONG[found](x_ptr))
    assert f"{__file__}:" in caught.value.where
    assert "program (0,)" in caught.value.where


@pytest.mark.parametrize("flag", [True, False])
def test_a_flag_as_the_mask_of_one_address_keeps_its_shape(flag: bool) -> None:
    shapes = []

    def kernel(x_ptr: Any) -> None:
        one = tl.load(x_ptr + 5, mask=flag, other=9.0)
        shapes.append(one.shape)
        tl.store(x_ptr, one)
        tl.store(x_ptr + 1, -1.0, mask=flag)

    assert run(kernel)[:2].tolist() == ([5, -1] if flag else [9, 1])
    assert shapes == [()]


def test_a_block_beside_a_flag_is_taken_where_the_flag_is_false() -> None:
    def kernel(x_ptr: Any) -> None:
        beside = tl.load(vector(x_ptr + 8))
        tl.store(vector(x_ptr), tl.load(vector(x_ptr), mask=False, other=beside))

    assert run(kernel)[:4].tolist() == [8, 9, 10, 11]


def test_a_window_is_padded_outside_the_tensor_on_the_axes_that_are_checked() -> None:
    def kernel(x_ptr: Any) -> None:
        edge = tl.advance(window(x_ptr), (6, 6))
        block = tl.load(edge, boundary_check=(0, 1), padding_option="zero")
        tl.store(window(x_ptr), block)

    expected = X.reshape(8, 8).copy()
    expected[:4, :4] = 0
    expected[:2, :2] = X.reshape(8, 8)[6:, 6:]
    np.testing.assert_array_equal(run(kernel).reshape(8, 8), expected)


def test_atomics_of_all_programs_add_up() -> None:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        n = tl.arange(0, 16)
        before = tl.atomic_add(x_ptr + n % 4, 1, mask=n < 12)
        tl.store(out_ptr + tl.program_id(0) * 16 + n, before)

    bed = Bed(num_pes=4)
    x, out = bed.place(np.zeros(4, np.int32)), bed.place(np.zeros(128, np.int32))
    bed.launch(kernel, x, out, grid=(8,))
    assert bed.read(x).tolist() == [24] * 4
    seen = bed.read(out).reshape(8, 16)[:, :12].reshape(8, 3, 4)
    for place in range(4):  # every count was seen once
        assert sorted(seen[:, :, place].reshape(-1)) == list(range(24))


def test_an_atomic_that_a_flag_keeps_out_does_nothing() -> None:
    def kernel(x_ptr: Any) -> None:
        tl.atomic_add(x_ptr, 5.0, mask=False)
        tl.atomic_add(x_ptr + 1, 5.0, mask=True)

    assert run(kernel)[:2].tolist() == [0, 6]


def test_an_atomic_on_an_address_between_elements_is_refused() -> None:
    def kernel(words_ptr: Any) -> None:
        halves = words_ptr.to(tl.pointer_type(tl.int16)) + 1
        tl.atomic_add(halves.to(tl.pointer_type(tl.int32)), 1)

    bed = Bed()
    with pytest.raises(KernelError, match=r"no multiple of its elements.*aligned elements"):
        bed.launch(kernel, bed.place(np.zeros(4, np.int32)))
