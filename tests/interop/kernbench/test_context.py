"""Tensors, requests and devices of KernBench contexts."""

import gc
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context, two_sips
from tilewright.errors import TensorError, TilewrightError
from tilewright.interop.kernbench.address import PhysAddr
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.message import MemoryReadMsg
from tilewright.interop.kernbench.placement import DPPolicy
from tilewright.interop.kernbench.value import resolve_device

ROWS = DPPolicy(cube="replicate", pe="row_wise", num_cubes=1)


def test_tensors_hold_what_was_copied_into_them() -> None:
    torch = context()
    values = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    for dp in (ROWS, DPPolicy(), DPPolicy(cube="column_wise", pe="row_wise", num_cubes=3)):
        tensor = torch.zeros((8, 6), dtype="f32", dp=dp)
        assert not tensor.numpy().any()
        assert tensor.copy_(torch.from_numpy(values)) is tensor
        assert np.array_equal(tensor.numpy(), values)
        assert np.array_equal(tensor.data[2:4, 1], values[2:4, 1])
        assert tensor[3, 2] == values[3, 2]


def test_names_count_and_shards_are_physical_memory_of_their_pes() -> None:
    torch = context()
    first, second = torch.empty((4, 4), dp=ROWS), torch.empty((4, 4), dp=ROWS, name="mine")
    third = torch.empty((4,), dp=DPPolicy(num_cubes=1, num_pes=1))
    assert [each.name for each in (first, second, third)] == ["t1", "mine", "t3"]
    for index, shard in enumerate(second.shards):
        address = PhysAddr.decode(shard.pa)
        assert (address.sip_id, shard.sip, shard.cube, shard.pe) == (0, 0, 0, index)
        assert (shard.nbytes, shard.offset_bytes) == (8, 8 * index)
    torch.zeros((2,), "i8", dp=ROWS)
    handle = torch.submit(
        MemoryReadMsg("test", "read", 0, 0, 0, second.shards[0].pa, second.shards[0].nbytes)
    )
    assert torch.wait(handle).ok


def test_a_tensor_needs_a_policy_and_a_context_with_a_spec() -> None:
    torch = context()
    with pytest.raises(ValueError, match="dp=None, expected a DPPolicy") as caught:
        torch.zeros((4, 4))
    assert isinstance(caught.value, TilewrightError)
    bare = RuntimeContext(torch.engine, resolve_device("all"), "test")
    with pytest.raises(RuntimeError, match=r"a context without spec, .*pass spec=graph.spec"):
        bare.empty((4, 4), dp=ROWS)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.complex64, np.bool_])
def test_from_numpy_takes_the_dtypes_of_kernbench_alone(dtype: type) -> None:
    with pytest.raises(ValueError, match="from_numpy: found an array of"):
        context().from_numpy(np.zeros(4, dtype))


def test_from_numpy_shares_memory_with_a_contiguous_array() -> None:
    torch, array = context(), np.zeros((4, 2), np.float16)
    host, gaps = torch.from_numpy(array), torch.from_numpy(array[:, 0])
    array[:] = 3
    assert host.numpy().tolist() == array.tolist()
    assert not gaps.numpy().any()


def test_a_message_counts_as_complete_once_somebody_has_waited_for_it() -> None:
    torch = context()
    tensor = torch.zeros((4, 4), dp=ROWS)
    num_handles = len(torch.handles())
    handles = [
        torch.submit(MemoryReadMsg("test", "again", 0, 0, 0, tensor.shards[0].pa, 8))
        for _ in range(2)
    ]
    torch.wait(handles[1])  # the first is over too, in simulated time
    assert [torch.is_completed(each) for each in handles] == [False, True]
    torch.wait_all()
    assert torch.is_completed(handles[0])
    assert torch.handles()[num_handles:] == handles
    assert len(set(handles)) == 2


def test_traces_have_the_fields_of_a_wait_once() -> None:
    torch = context()
    tensor = torch.zeros((4, 4), dp=ROWS)
    assert [(each["phase"], each["name"], each["pe"], each["nbytes"]) for each in torch.traces] == [
        ("memory_write", "t1", pe, 8) for pe in range(4)
    ]
    handle = torch.submit(MemoryReadMsg("test", "read", 0, 0, 0, tensor.shards[0].pa, 8))
    for _ in range(2):
        assert torch.wait(handle, _meta={"mine": 7}).ok
    assert [each["mine"] for each in torch.traces[4:]] == [7]
    assert torch.traces[4]["total_ns"] > 0


def test_leaving_a_context_frees_its_tensors_and_keeps_errors() -> None:
    torch = context()
    with torch:
        kept = torch.zeros((4, 4), dp=ROWS)
        torch.zeros((4, 4), dp=ROWS)
    gc.collect()
    torch.engine.host.deployments.reclaim()
    assert torch.engine.host.driver.tensors == {}
    with pytest.raises(TensorError, match="tensor 't1': found a tensor without memory"):
        kept.numpy()
    kept = torch.zeros((4, 4), dp=ROWS)
    with pytest.raises(KeyError, match="mine"), torch:
        raise KeyError("mine")
    with pytest.raises(TensorError, match="tensor 't3': found a tensor without memory"):
        kept.numpy()


def test_a_context_is_cleaned_up_and_usable_after_an_error_of_a_kernel() -> None:
    def fail(x_ptr: int, tl: Any) -> None:
        raise KeyError(f"of PE {tl.program_id(0)}, {x_ptr}")

    torch = context()
    first = torch.zeros((4, 4), dp=ROWS)
    with pytest.raises(KeyError, match="of PE 0"), torch:
        torch.launch("fail", fail, first)
    assert first.placed is None
    again = torch.zeros((4, 4), dp=ROWS)
    assert not again.numpy().any()


def test_two_contexts_on_one_engine_never_have_the_same_bytes() -> None:
    one = context()
    other = RuntimeContext(one.engine, "all", "other", one.spec)
    first, second = one.zeros((4, 4), dp=ROWS), other.zeros((4, 4), dp=ROWS)
    assert first.va_base != second.va_base
    assert {each.pa for each in first.shards}.isdisjoint(each.pa for each in second.shards)


def test_a_set_device_places_what_names_no_sips() -> None:
    torch = context(two_sips())
    everywhere = torch.empty((8, 4), dp=DPPolicy(num_cubes=1, num_pes=1))
    assert torch.ahbm.current_device() is None
    torch.accelerator.set_device_index(1)
    assert (torch.ahbm.current_device(), torch.accelerator.current_device_index()) == (1, 1)
    own = torch.empty((8, 4), dp=DPPolicy(num_cubes=1, num_pes=1))
    split = torch.empty((8, 4), dp=DPPolicy(sip="row_wise", num_cubes=1, num_pes=1))
    counted = torch.empty((8, 4), dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1))
    tensors = (everywhere, own, split, counted)
    assert [[each.sip for each in tensor.shards] for tensor in tensors] == [
        [0, 1],
        [1],
        [0, 1],
        [0],
    ]


def test_a_device_of_one_sip_has_its_memory_alone() -> None:
    torch = context(two_sips(), "sip:1")
    tensor = torch.zeros((8, 4), dp=DPPolicy(num_cubes=1, num_pes=1))
    assert [shard.sip for shard in tensor.shards] == [1]
    with pytest.raises(ValueError, match="found sip:2, expected a SIP from 0 to 1"):
        context(two_sips(), "sip:2")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"system": {"sips": {"count": 9}}},
            r"spec: found system.sips.count=9, expected 1, as the",
        ),
        ({"sip": {"cube_mesh": {"w": 4}}}, r"found sip.cube_mesh.w=4, expected 2"),
        ({"cube": {"pe_layout": {"pe_per_corner": 2}}}, r"pe_layout.pe_per_corner=2, expected 1"),
    ],
)
def test_the_spec_of_another_machine_is_refused(spec: dict[str, Any], message: str) -> None:
    torch = context()
    with pytest.raises(ValueError, match=message):
        RuntimeContext(torch.engine, "all", "test", spec)
