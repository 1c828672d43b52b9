"""Tensors of KernBench programs: on the host, in the machine, and placed by hand."""

from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context
from tilewright.errors import PlacementError, TensorError
from tilewright.interop.kernbench.address import PhysAddr
from tilewright.interop.kernbench.allocator import AddressConfig, PEMemAllocator, VirtualAllocator
from tilewright.interop.kernbench.placement import DPPolicy, resolve_dp_policy
from tilewright.interop.kernbench.tensor import Tensor, deploy_tensor
from tilewright.interop.kernbench.value import dtype_itemsize

ROWS = DPPolicy(pe="row_wise", num_cubes=1)
CONFIG = AddressConfig(1, 1, 4, 24 << 30, 4, 16 << 20, 4 << 20, 32 << 20)


def test_a_tensor_of_the_host_is_its_array() -> None:
    array = np.arange(8, dtype=np.int16).reshape(2, 4)
    tensor = context().from_numpy(array)
    tensor[0, 1] = 7
    assert (tensor[0, 1], array[0, 1], len(tensor), tensor.numel, tensor.nbytes) == (7, 7, 2, 8, 16)
    tensor.copy_(np.zeros((2, 4), np.int16))
    assert not array.any()
    assert repr(tensor) == "Tensor(host, shape=(2, 4), dtype='i16', name='host')"
    with pytest.raises(
        TensorError, match="found a tensor of the host, expected one in the machine"
    ):
        _ = tensor.va_base


def test_a_tensor_in_the_machine_is_read_and_written_across_shards() -> None:
    torch = context()
    tensor, other = (torch.zeros((4, 4), "f32", dp=ROWS) for _ in range(2))
    tensor[1:3] = 2.5
    other[0] = tensor[2]
    other[3] = torch.from_numpy(np.full(4, -1, np.float32))
    assert np.asarray(tensor).tolist() == [[0] * 4, [2.5] * 4, [2.5] * 4, [0] * 4]
    assert np.asarray(other, np.float64)[:, 0].tolist() == [2.5, 0, 0, -1]
    assert other.copy_(tensor).numpy().tolist() == tensor.data.tolist()
    assert repr(tensor) == "Tensor(shape=(4, 4), dtype='f32', name='t1', shards=4)"


def test_a_copy_that_differs_from_others_is_read_by_its_pe() -> None:
    torch = context()
    copies = torch.zeros((4,), dp=DPPolicy(num_cubes=1))

    def kernel(x_ptr: int, n: int, tl: Any) -> None:
        tl.store(x_ptr, tl.full((n,), float(tl.program_id(0)), "f16"))

    torch.launch("number", kernel, copies, 4)
    with pytest.raises(TensorError, match=r"copies that are the same; .*t\.local\(pe\)"):
        copies.numpy()
    for pe in range(4):
        assert copies.local((0, 0, pe)).tolist() == [pe] * 4
    with pytest.raises(PlacementError, match=r"found sip0.cube1.pe0, which has no shard"):
        copies.local((0, 1, 0))


def test_a_tensor_made_by_hand_has_no_memory_and_cannot_be_placed() -> None:
    tensor = Tensor((2, 4), "bf16", "mine")
    assert (tensor.shape, tensor.dtype, tensor.nbytes) == ((2, 4), "bf16", 16)
    assert repr(tensor) == "Tensor(shape=(2, 4), dtype='bf16', name='mine')"
    with pytest.raises(TensorError, match=r"'mine': found to\(placement=.*context places"):
        tensor.to(placement=())
    with pytest.raises(TensorError, match="tensor 'mine': found a tensor without memory"):
        tensor.numpy()
    with pytest.raises(TensorError, match=r"the dtype 'half', expected one of f16"):
        Tensor((2,), "half")


def test_deploying_by_hand_takes_memory_of_each_shards_pe() -> None:
    allocators = {pe: PEMemAllocator(0, 0, 0, pe, CONFIG) for pe in range(4)}
    virtual = VirtualAllocator(0x1_0000_0000, 64 << 30, 4096)
    placement = resolve_dp_policy(
        DPPolicy(pe="row_wise"), shape=(8, 16), itemsize=dtype_itemsize("f16"), num_pe=4,
        num_cubes=1, target_sip=0,
    )  # fmt: skip
    placed = deploy_tensor("t", (8, 16), "f16", placement, allocators, virtual)
    assert (placed.va_base, placed.nbytes) == (0x1_0000_0000, 256)
    for pe, shard in enumerate(placed.shards):
        assert (shard.pe, shard.offset_bytes, shard.nbytes) == (pe, 64 * pe, 64)
        assert shard.pa == PhysAddr.pe_hbm_addr(0, 0, pe, 0, CONFIG.hbm_slice_bytes).encode()
        assert allocators[pe].hbm_statistics.used_bytes == 64
    assert deploy_tensor("u", (8, 16), "f16", placement, allocators).va_base == 0  # of no range
    del allocators[2]
    with pytest.raises(TensorError, match=r"tensor 't': found no allocator of the PE \(0, 0, 2\)"):
        deploy_tensor("t", (8, 16), "f16", placement, allocators, virtual)


def test_shards_are_named_by_coordinates_and_not_by_a_flat_number() -> None:
    (shard, *_) = resolve_dp_policy(ROWS, shape=(4, 4), itemsize=2, num_pe=4, num_cubes=1)
    assert (shard.sip, shard.cube, shard.pe) == (0, 0, 0)
    with pytest.raises(AttributeError, match="found no pe_index, expected sip, cube and pe"):
        _ = shard.pe_index
