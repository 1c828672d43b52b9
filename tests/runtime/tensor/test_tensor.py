import gc
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.packing import Bytes, index_of, shard_bytes
from tests.runtime.placements import PES, StoreOwner, bits_of, draw_array, placements
from tilewright.errors import KernelTypeError, RequestError, TensorError
from tilewright.language.dtype import (
    DTYPES,
    DType,
    bfloat16,
    float8e4nv,
    float16,
    float32,
    int1,
    int4,
    int32,
    uint8,
)
from tilewright.machine.coords import PeCoord
from tilewright.runtime.placement.pages import MemoryPart
from tilewright.runtime.placement.placement import Placement
from tilewright.runtime.placement.policy import DPPolicy, Interleave, Split
from tilewright.runtime.tensor.tensor import Tensor, TensorOwner

ROWS = DPPolicy(pe="row_wise", num_sips=1, num_cubes=1)


def new_tensor(
    owner: StoreOwner, shape: tuple[int, ...] = (3, 4), dtype: DType = float32, dp: DPPolicy = ROWS
) -> Tensor:
    return owner.empty(shape, dtype, dp=dp, name="a")


def filled(owner: StoreOwner, shape: tuple[int, ...] = (3, 4), dp: DPPolicy = ROWS) -> Tensor:
    count = int(np.prod(shape))
    values = np.arange(count, dtype=np.float32).reshape(shape)
    return new_tensor(owner, shape, dp=dp).copy_(values, timed=False)


def test_the_test_double_is_an_owner() -> None:
    owner: TensorOwner = StoreOwner()
    assert owner is not None


@given(data=st.data(), placement=placements())
def test_what_is_copied_to_the_machine_is_read_back(
    data: st.DataObject, placement: Placement
) -> None:
    owner = StoreOwner(placement.page_bytes)
    array = draw_array(data, placement.shape, placement.dtype)
    tensor = owner.tensor(placement).copy_(owner.host(array))
    found = tensor.numpy()
    assert found.dtype == placement.dtype.storage
    assert found.shape == placement.shape
    assert bits_of(found) == bits_of(array)
    for shard in placement.shards:
        if shard.is_whole:
            assert bits_of(tensor.local(shard.home)) == bits_of(array[index_of(shard.part)])
    tensor.free()
    assert owner.small.used_bytes == 0
    assert not any(map(len, owner.small.tables.values()))


@given(data=st.data(), placement=placements())
def test_the_slice_of_a_pe_holds_the_bytes_of_its_shard(
    data: st.DataObject, placement: Placement
) -> None:
    owner = StoreOwner(placement.page_bytes)
    array = draw_array(data, placement.shape, placement.dtype)
    tensor = owner.tensor(placement).copy_(array)
    for shard in tensor.shards:
        pieces = tensor._device.pages.pieces(shard.home)
        store = owner.stores[shard.home]
        found = [store.read(piece.offset, len(piece.span)) for piece in pieces]
        expected = shard_bytes(placement, array, shard)
        np.testing.assert_array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_a_copy_converts_small_numbers_exactly(source: DType) -> None:
    owner = StoreOwner()
    host = owner.host(np.array([0, 1, 1, 0, 1]).astype(source.storage))
    for target in DTYPES:
        tensor = new_tensor(owner, (5,), target).copy_(host)
        assert tensor.numpy().dtype == target.storage
        assert tensor.numpy().astype(np.float64).tolist() == [0, 1, 1, 0, 1]


def test_a_copy_rounds_once_as_a_kernel_does() -> None:
    owner = StoreOwner()
    above_half = 1 + 2.0**-8 + 2.0**-40  # by way of f32 it would be a tie, and go to even
    tensor = new_tensor(owner, (2,), bfloat16).copy_(np.array([above_half, -above_half]))
    assert tensor.tolist() == [1 + 2.0**-7, -1 - 2.0**-7]
    largest = new_tensor(owner, (1,), float8e4nv).copy_(np.array([1e9]))
    assert largest.item() == 448.0


def test_a_copy_broadcasts() -> None:
    owner = StoreOwner()
    tensor = new_tensor(owner).copy_(np.arange(4, dtype=np.float32))
    assert tensor.tolist() == [[0, 1, 2, 3]] * 3


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(TensorError, match=r"values of shape \(5,\), expected \(3, 4\), or what"):
        new_tensor(StoreOwner()).copy_(np.zeros(5))


def test_a_copy_between_tensors_of_the_machine_goes_through_the_host() -> None:
    owner = StoreOwner()
    source = filled(owner)
    tensor = new_tensor(owner, dp=DPPolicy(pe="column_wise", num_sips=1, num_cubes=2))
    tensor.copy_(source)
    assert owner.timed == [("read", 48), ("write", 96)]  # two cubes have a copy each
    np.testing.assert_array_equal(tensor.numpy(), source.numpy())


def test_replicas_are_written_alike() -> None:
    owner = StoreOwner()
    tensor = filled(owner, dp=DPPolicy())
    tensor[1, 2] = 50
    assert tensor.numpy()[1, 2] == 50
    for pe in PES:
        np.testing.assert_array_equal(tensor.local(pe), tensor.numpy())


def test_what_one_pe_has_may_differ_from_what_the_lowest_has() -> None:
    owner = StoreOwner()
    tensor = filled(owner, (3, 2), dp=DPPolicy(num_sips=2, num_cubes=1, num_pes=1))
    other = PeCoord(1, 0, 0)
    (piece,) = tensor._device.pages.pieces(other)
    changed = np.array([7, 8], np.float32).view(np.uint8)
    owner.stores[other].write(piece.offset + 16, changed)
    for read in (Tensor.numpy, lambda t: t[2], lambda t: t.to("cpu")):
        with pytest.raises(TensorError) as caught:
            read(tensor)
        assert str(caught.value) == (
            "tensor 'a': found other values in sip1.cube0.pe0.hbm than in sip0.cube0.pe0.hbm, "
            "expected copies that are the same; split it or place it on one PE, or look at one "
            "copy: t.local(pe)"
        )
    assert repr(tensor).startswith("tensor(copies that differ, shape=(3, 2)")
    assert tensor[:2].tolist() == [[0, 1], [2, 3]]
    assert tensor.local(PES[0])[2].tolist() == [4, 5]
    assert tensor.local(other)[2].tolist() == [7, 8]


def test_copies_may_differ_beside_what_is_read() -> None:
    owner = StoreOwner()
    tensor = filled(owner, (3, 2), dp=DPPolicy(num_sips=2, num_cubes=1, num_pes=1))
    other = PeCoord(1, 0, 0)
    (piece,) = tensor._device.pages.pieces(other)
    owner.stores[other].write(piece.offset + 4, np.ones(4, np.uint8))
    assert tensor[:, 0].tolist() == [0, 2, 4]
    with pytest.raises(TensorError, match="copies that are the same"):
        tensor[:, 1]


def test_from_numpy_copies_and_so_does_numpy() -> None:
    owner = StoreOwner()
    array = np.zeros((2, 3), np.float32)
    tensor = owner.host(array)
    array[0, 0] = 5
    tensor.numpy()[0, 1] = 5
    assert not tensor.numpy().any()
    tensor[0, 2] = 5
    assert array[0, 2] == 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_array_of_each_dtype_becomes_a_tensor_of_it(dtype: DType) -> None:
    array = np.zeros(3, dtype.storage)
    assert StoreOwner().host(array).dtype is dtype


def test_an_array_in_another_byte_order_has_the_same_values() -> None:
    tensor = StoreOwner().host(np.array([1.5, -2], ">f4"))
    assert (tensor.dtype, tensor.tolist()) == (float32, [1.5, -2])


@pytest.mark.parametrize("array", [np.zeros(2, np.complex64), np.array(["a"]), np.array([None])])
def test_an_array_that_kernels_have_no_dtype_for_is_refused(array: Any) -> None:
    with pytest.raises(KernelTypeError, match="expected one of float64"):
        StoreOwner().host(array)


def test_a_host_tensor_and_one_in_the_machine_have_one_interface() -> None:
    owner = StoreOwner()
    for tensor in (owner.host(filled(owner).numpy()), filled(owner)):
        assert (tensor.shape, tensor.ndim, len(tensor), tensor.numel()) == ((3, 4), 2, 3, 12)
        assert (tensor.nbytes, tensor.element_size(), tensor.dtype) == (48, 4, float32)
        assert tensor[1].tolist() == [4, 5, 6, 7]
        tensor[:, 0] = [1, 2, 3]
        assert tensor.data[:, 0].tolist() == [1, 2, 3]
        assert np.asarray(tensor, np.int64).sum() == 66 - 12 + 6
        assert [row.sum() for row in tensor] == [7, 20, 33]
        tensor.fill_(2)
        assert tensor.tolist() == [[2] * 4] * 3
        assert tensor[0, 0].item() == 2


def test_a_host_tensor_takes_no_time_and_has_no_shards() -> None:
    owner = StoreOwner()
    tensor = owner.host(np.zeros(4))
    tensor.fill_(1)
    assert (tensor.is_host, tensor.shards, owner.timed) == (True, (), [])
    assert tensor.to("cpu") is tensor
    with pytest.raises(TensorError, match="found a tensor on the host, expected one in the machi"):
        tensor.local(PES[0])


def test_what_goes_to_the_machine_or_back_takes_time_and_a_printed_tensor_none() -> None:
    owner = StoreOwner()
    tensor = new_tensor(owner)
    tensor.copy_(np.zeros((3, 4)))
    tensor.fill_(3)
    tensor[0, 1:3] = 5
    host = tensor.to("cpu")
    assert owner.timed == [("write", 48), ("write", 48), ("write", 8), ("read", 48)]
    owner.timed.clear()
    assert tensor[0, 0] == tensor.numpy()[0, 0] == tensor.tolist()[0][0] == tensor.data[0, 0]
    assert owner.timed == [("read", 4), ("read", 48), ("read", 48), ("read", 48)]
    owner.timed.clear()
    tensor.copy_(host, timed=False).fill_(1, timed=False)
    tensor.to("cpu", timed=False)
    assert tensor.numpy(timed=False)[0, 0] == tensor.tolist(timed=False)[0][0] == 1
    assert tensor.local(PES[0], timed=False)[0, 0] == 1
    assert (
        tensor.read(np.s_[1:, :1], timed=False).tolist()
        == tensor.numpy(timed=False)[1:, :1].tolist()
    )
    assert repr(tensor)
    assert owner.timed == []


def test_a_tensor_moves_to_another_placement_and_to_the_host() -> None:
    owner = StoreOwner()
    array = np.arange(24, dtype=np.float16).reshape(4, 6)
    tensor = owner.host(array).to(DPPolicy(pe=Split(1)))
    moved = tensor.to(dp=DPPolicy(sip=Interleave(64)))
    assert len(moved.placement.owners) == 1
    assert not moved.is_host
    host = moved.to("cpu")
    assert host.is_host
    np.testing.assert_array_equal(host.numpy(), array)


@pytest.mark.parametrize(
    ("target", "dp"), [("gpu", None), (None, None), (ROWS, ROWS), ("cpu", ROWS)]
)
def test_a_target_that_is_none_is_refused(target: Any, dp: Any) -> None:
    with pytest.raises(TensorError, match="expected a DPPolicy or 'cpu'"):
        filled(StoreOwner()).to(target, dp=dp)


def test_an_element_of_half_a_byte_changes_alone() -> None:
    owner = StoreOwner()
    tensor = new_tensor(owner, (3, 5), int4).copy_(np.arange(15).reshape(3, 5) % 8)
    tensor[1, 2:4] = -1
    tensor[2, ::2] = -2
    expected = np.arange(15).reshape(3, 5) % 8
    expected[1, 2:4] = -1
    expected[2, ::2] = -2
    assert tensor.numpy().astype(np.int8).tolist() == expected.tolist()
    assert tensor.nbytes == 8
    with pytest.raises(TensorError, match="an element of 4 bits, expected at least a byte"):
        tensor.element_size()


def test_only_the_bytes_of_the_index_are_written() -> None:
    owner = StoreOwner()
    tensor = filled(owner, (4, 8))
    owner.written.clear()
    tensor[::2, [1, 2, 5]] = 0
    assert [part.num_bytes for part in owner.written] == [8, 4, 8, 4]


@pytest.mark.parametrize(
    ("value", "dtype", "found"),
    [
        (300, uint8, "found 300, expected a whole number from 0 to 255"),
        (-1, uint8, "found -1, expected a whole number from 0 to 255"),
        (8, int4, "found 8, expected a whole number from -8 to 7"),
        (0.5, int32, "found 0.5, expected a whole number"),
        ([1, 2, 999], uint8, "found 999, expected a whole number"),
    ],
)
def test_numbers_that_a_dtype_cannot_hold_are_refused(value: Any, dtype: DType, found: str) -> None:
    tensor = new_tensor(StoreOwner(), (3,), dtype)
    with pytest.raises(TensorError) as caught:
        tensor[:] = value
    assert found in str(caught.value)


def test_a_fill_is_one_number() -> None:
    with pytest.raises(TensorError, match="expected one number; use copy_ for several"):
        new_tensor(StoreOwner(), (3,)).fill_([1, 2, 3])
    assert new_tensor(StoreOwner(), (2,), int1).fill_(True).tolist() == [True, True]
    assert new_tensor(StoreOwner(), (2,), bfloat16).fill_(0.1)[0] == ml_dtypes.bfloat16(0.1)


def test_a_scalar_has_an_item_and_no_length() -> None:
    owner = StoreOwner()
    for tensor in (owner.host(np.float32(3)), new_tensor(owner, ()).fill_(3)):
        assert (tensor.shape, tensor.item(), bool(tensor), tensor[()]) == ((), 3, True, 3)
        tensor[...] = 4
        assert tensor.tolist() == 4
        for use in (len, iter):
            with pytest.raises(TensorError, match="the length of a scalar"):
                use(tensor)


def test_several_elements_are_no_item_and_no_truth() -> None:
    for use in (Tensor.item, bool):
        with pytest.raises(TensorError, match="found 12 elements, expected one"):
            use(filled(StoreOwner()))


def test_an_empty_tensor_is_read_and_written() -> None:
    owner = StoreOwner()
    tensor = new_tensor(owner, (0, 4)).fill_(1)
    assert tensor.numpy().shape == (0, 4)
    assert (tensor.numel(), tensor.nbytes, tensor.shards) == (0, 0, ())
    assert owner.timed == []
    assert repr(tensor) == "tensor([], shape=(0, 4), dtype=fp32, name='a', on=no PE)"


def test_memory_is_not_shared() -> None:
    with pytest.raises(TensorError, match="expected a copy"):
        np.asarray(filled(StoreOwner()), copy=False)


def test_a_printed_tensor_shows_small_values_and_where_it_is() -> None:
    owner = StoreOwner()
    assert repr(filled(owner, (2, 2))) == (
        "tensor([[0., 1.],\n        [2., 3.]], "
        "shape=(2, 2), dtype=fp32, name='a', on=sip0.cube0.pe0-1)"
    )
    assert repr(filled(owner, (101,))).startswith("tensor(..., shape=(101,), dtype=fp32")
    assert repr(owner.host(np.int32(7))) == "tensor(7, shape=(), dtype=int32, name='host')"


def test_a_tensor_of_a_machine_that_has_stopped_is_printed() -> None:
    class Stopped(StoreOwner):
        def read(self, parts: Sequence[MemoryPart], *, timed: bool) -> list[Bytes]:
            found = f"a read of {len(parts)} parts, timed: {timed}, of a device that ended"
            raise RequestError("wait", found, "one that can go on", "make a new context")

    tensor = filled(Stopped(), (2,))
    assert repr(tensor).startswith("tensor(values that cannot be read, shape=(2,)")


def test_a_freed_tensor_refuses_every_use_and_being_freed_again_does_nothing() -> None:
    owner = StoreOwner()
    tensor = filled(owner)
    tensor.free()
    tensor.free()
    assert tensor.is_freed
    assert repr(tensor) == "tensor(freed, shape=(3, 4), dtype=fp32, name='a')"
    uses: list[Any] = [
        Tensor.numpy, Tensor.tolist, np.asarray, lambda t: t[0], lambda t: t.fill_(0),
        lambda t: t.copy_(np.zeros(4)), lambda t: t.__setitem__(0, 1), lambda t: t.to("cpu"),
        lambda t: t.to(ROWS), lambda t: t.shards, lambda t: t.placement, lambda t: t.address,
        lambda t: t.is_host, lambda t: t.local(PES[0]), lambda t: filled(owner).copy_(t),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(TensorError, match="tensor 'a': found a use after it was freed"):
            use(tensor)


def test_a_freed_host_tensor_refuses_uses_too() -> None:
    tensor = StoreOwner().host(np.zeros(3))
    tensor.free()
    with pytest.raises(TensorError, match="a use after it was freed"):
        tensor.numpy()


def test_a_tensor_that_goes_away_leaves_its_pages_to_its_owner() -> None:
    owner = StoreOwner()
    tensor = filled(owner)
    pages = tensor._device.pages
    del tensor
    gc.collect()
    assert owner.abandoned == [pages]
    assert owner.small.used_bytes > 0  # nothing ran: the owner frees them when it likes
    owner.free(pages)
    assert owner.small.used_bytes == 0


def test_a_tensor_that_was_freed_leaves_nothing() -> None:
    owner = StoreOwner()
    tensor = filled(owner)
    tensor.free()
    del tensor
    gc.collect()
    assert owner.abandoned == []


def test_without_data_floats_have_no_values_and_integers_keep_theirs() -> None:
    owner = StoreOwner(carries_data=False)
    floats, indices = new_tensor(owner), new_tensor(owner, (4,), int32)
    indices.copy_(np.arange(4))
    assert indices.tolist(timed=False) == [0, 1, 2, 3]
    floats.copy_(np.ones((3, 4)))
    floats[0] = 1
    floats.fill_(1).copy_(floats)
    assert owner.timed == [("write", 16), *[("write", n) for n in (48, 16, 48)], ("read", 48),
                           ("write", 48)]  # fmt: skip
    assert (floats.has_values, indices.has_values) == (False, True)
    assert repr(floats).startswith("tensor(no values, shape=(3, 4)")
    for use in (Tensor.numpy, lambda t: t[0], lambda t: t.to("cpu"), lambda t: t.local(PES[0])):
        with pytest.raises(TensorError) as caught:
            use(floats)
        assert str(caught.value) == (
            "tensor 'a': found no values, since its context has no data and fp32 is a float, "
            "expected values; make the context with data=True"
        )


def test_integers_are_not_copied_from_floats_without_values() -> None:
    owner = StoreOwner(carries_data=False)
    with pytest.raises(TensorError, match="no values"):
        new_tensor(owner, (4,), int32).copy_(new_tensor(owner, (4,), float16))


def test_a_moved_tensor_without_values_takes_its_time() -> None:
    owner = StoreOwner(carries_data=False)
    new_tensor(owner).copy_(np.ones(4), timed=False).to(ROWS)
    assert owner.timed == [("read", 48), ("write", 48)]
    assert not any(store.arena_bytes for store in owner.stores.values())


def test_a_copy_for_some_pes_leaves_the_others_as_they_are() -> None:
    owner = StoreOwner()
    tensor = new_tensor(owner, (2,), dp=DPPolicy(num_sips=1, num_cubes=1))
    tensor.copy_(np.array([1, 2], np.float32), timed=False)
    chosen, other = PES[1], PES[0]
    tensor.copy_(np.array([5, 6], np.float32), timed=False, only={chosen})
    assert tensor.local(chosen).tolist() == [5, 6]
    assert tensor.local(other).tolist() == [1, 2]
