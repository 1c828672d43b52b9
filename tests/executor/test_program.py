from typing import Any

import numpy as np
import pytest

from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.value import Block, Index, Pointers


def run(kernel: Any, dtype: Any = np.int32, n: int = 64) -> Array:
    bed = Bed()
    out = bed.place(np.zeros(n, dtype))
    bed.launch(kernel, out)
    return bed.read(out)


def test_an_index_that_a_conversion_would_wrap_becomes_a_block() -> None:
    kinds: list[type] = []

    def kernel(out_ptr: Any) -> None:
        n = tl.arange(0, 8)
        far = n.to(tl.int64) + 2**32 + 5
        near = n.to(tl.int64) + 5
        kinds.extend(type(each) for each in (far, far.to(tl.int32), near.to(tl.int32)))
        tl.store(out_ptr + n, far.to(tl.int32))

    assert run(kernel)[:8].tolist() == list(range(5, 13))
    assert kinds == [Index, Block, Index]


@pytest.mark.parametrize(("other", "expected"), [(300, 44), (-1, -1), (2.9, 2), (True, 1)])
def test_what_stands_beside_a_mask_is_converted_to_the_elements(other: Any, expected: int) -> None:
    def kernel(out_ptr: Any) -> None:
        n = tl.arange(0, 4)
        tl.store(out_ptr + n, tl.load(out_ptr + n, mask=n < 1, other=other))

    assert run(kernel, np.int8)[:4].tolist() == [0, *[expected] * 3]


def test_zeros_keep_their_signs() -> None:
    def kernel(out_ptr: Any) -> None:
        x = tl.load(out_ptr + tl.arange(0, 4)) + 1
        tl.store(out_ptr + tl.arange(0, 4), x * 0.0)
        tl.store(out_ptr + 4 + tl.arange(0, 4), x * -0.0)

    assert np.signbit(run(kernel, np.float32, 8)).tolist() == [False] * 4 + [True] * 4


def test_new_axes_and_whole_slices_are_subscripts() -> None:
    shapes: list[Any] = []

    def kernel(out_ptr: Any) -> None:
        n = tl.arange(0, 4)
        x = tl.load(out_ptr + n)
        for value in (n, n < 2, out_ptr + n, x):
            shapes.append((value[:, None].shape, value[None, :, None].shape, value[None].shape))

    run(kernel)
    assert shapes == [((4, 1), (1, 4, 1), (1, 4))] * 4


@pytest.mark.parametrize("key", [0, slice(1, 2), (slice(None), slice(None))])
def test_other_subscripts_are_refused(key: Any) -> None:
    with pytest.raises(KernelError, match="subscripts"):
        run(lambda out_ptr: tl.load(out_ptr + tl.arange(0, 4))[key])


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (lambda p: p * 2, "mul of <Pointers"),
        (lambda p: p + p, "add of <Pointers"),
        (lambda p: 1 - p, "sub of 1 and <Pointers"),
        (lambda p: p + 1.5, "add of <Pointers"),
        (lambda p: p.to(tl.int32), "addresses converted to tl.int32"),
    ],
)
def test_arithmetic_that_gives_no_addresses_is_refused(wrong: Any, found: str) -> None:
    with pytest.raises(KernelError, match=found):
        run(wrong)


def test_addresses_read_from_memory_are_pointers_again() -> None:
    def kernel(table_ptr: Any) -> None:
        target = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
        assert isinstance(target, Pointers)
        tl.store(target + tl.arange(0, 4), 7.0)

    bed = Bed()
    x = bed.place(np.zeros(4, np.float32))
    bed.launch(kernel, bed.place(np.array([x.address], np.int64)))
    assert bed.read(x).tolist() == [7] * 4


def test_what_is_no_operand_is_refused_by_its_type() -> None:
    with pytest.raises(KernelError, match="'text' of type str, expected a block"):
        run(lambda out_ptr: tl.load(out_ptr + tl.arange(0, 4)) + "text")


def test_blocks_of_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KernelTypeError, match=r"\(4,\) and \(3,\)"):
        run(lambda _: tl.arange(0, 4) + tl.arange(0, 3))


def test_an_unknown_method_of_a_block_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="a block has no attribute 'average'"):
        run(lambda out_ptr: tl.load(out_ptr + tl.arange(0, 4)).average())


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    def once(out_ptr: Any) -> None:
        x = tl.load(out_ptr + tl.arange(0, 64)) + 1
        tl.store(out_ptr + tl.arange(0, 64), x * x)

    bed = Bed()
    result = bed.launch(once, bed.place(np.ones(64, np.int32)))
    assert result.counters.commands == 4  # load, add, multiply, store
