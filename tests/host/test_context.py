from functools import cache
from typing import Any

import numpy as np
import pytest
from greenlet import greenlet

from tilewright.errors import KernelError, RequestError, SpecError, TensorError
from tilewright.host import DPPolicy, Interleave, PeCoord, RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.memory.address import MemoryKind, MemoryPlace

PAGE = 65_536
ROWS = DPPolicy(pe="row_wise")
EVERYWHERE = DPPolicy()


@cache
def machine(name: str = "ahbm-small") -> Machine:
    return build_machine(parse_machine(name))


def context(name: str = "ahbm-small", device: str = "all", **options: Any) -> RuntimeContext:
    return RuntimeContext(machine(name), device, **options)


def total_used(torch: RuntimeContext) -> int:
    memory = torch.driver.memory
    slices = sum(
        memory.allocator(MemoryPlace(MemoryKind.HBM, pe)).statistics.used_bytes
        for pe in torch.machine.grid.pes()
    )
    return slices + torch.driver.space.statistics.used_bytes


def num_mapped(torch: RuntimeContext) -> int:
    return sum(len(mmu.table) for mmu in torch.driver.mmus.values())


def test_a_context_takes_a_preset_a_spec_or_a_machine() -> None:
    named = RuntimeContext("ahbm-small").machine.spec
    assert named == RuntimeContext(parse_machine("ahbm-small")).machine.spec
    assert named == RuntimeContext(machine()).machine.spec
    with pytest.raises(SpecError):
        RuntimeContext("no-such-machine")


def test_both_engines_give_one_time() -> None:
    times = []
    for engine in ("native", "reference"):
        torch = context(engine=engine)
        torch.zeros((64, 64), "f32", dp=ROWS).copy_(np.ones((64, 64), np.float32))
        times.append(torch.now_ps)
    assert times[0] == times[1] > 0


def test_an_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(RequestError, match=r"'nativ', expected one of 'auto', .*'native'"):
        context(engine="nativ")


def test_a_shape_is_whole_numbers_also_of_numpy() -> None:
    torch = context()
    assert torch.zeros(np.int64(4), dp=ROWS).shape == (4,)  # type: ignore[arg-type]
    assert torch.zeros([np.int32(2), 3], dp=ROWS).shape == (2, 3)  # type: ignore[arg-type]
    for wrong in (2.5, (2, "3"), "44", None):
        with pytest.raises(RequestError, match="expected whole numbers"):
            torch.zeros(wrong, dp=ROWS)  # type: ignore[arg-type]


def test_deploying_takes_time_and_preloading_does_not() -> None:
    torch = context()
    torch.empty(8, dp=ROWS)
    mapped_ps = torch.now_ps
    assert mapped_ps > 0
    host = torch.from_numpy(np.ones(100_000, np.float16))
    target = torch.empty(100_000, dp=DPPolicy(pe=Interleave(PAGE)))
    before_ps = torch.now_ps
    target.copy_(host, timed=False)
    assert torch.now_ps == before_ps
    target.copy_(host)
    # 200 kB over PCIe 5.0 x16, whose payload is below 63 GB/s
    assert torch.now_ps - before_ps > 200_000 * 1000 // 63


def test_tensors_on_two_sips_are_deployed_at_the_same_time() -> None:
    elements = 500_000
    on_one, on_two = context("ahbm"), context("ahbm")
    on_one.zeros(elements, dp=DPPolicy(pe=Interleave(PAGE), num_sips=1, num_cubes=1))
    on_two.zeros(elements, dp=DPPolicy(pe=Interleave(PAGE), num_cubes=1))  # a copy on each
    assert on_two.now_ps < 1.1 * on_one.now_ps


def test_what_is_made_from_an_array_is_a_copy() -> None:
    array = np.arange(4, dtype=np.float32)
    host = context().from_numpy(array)
    array[:] = 0
    assert host.tolist() == [0, 1, 2, 3]


def test_a_tensor_needs_a_policy() -> None:
    with pytest.raises(RequestError, match=r"dp=None, expected a DPPolicy"):
        context().zeros((2, 2), dp=None)  # type: ignore[arg-type]


def test_cleanup_leaves_no_memory_and_no_translation() -> None:
    torch = context()
    kept = torch.zeros((64, 512), dp=ROWS)
    torch.full((3, 5, 7), 2, "i32", dp=EVERYWHERE)
    assert total_used(torch) > 0
    assert num_mapped(torch) > 0
    torch.cleanup()
    torch.cleanup()
    assert (total_used(torch), num_mapped(torch), kept.is_freed) == (0, 0, True)
    with pytest.raises(TensorError, match="freed"):
        kept.numpy()


def test_a_context_manager_cleans_up_and_hides_no_error() -> None:
    with context() as torch:
        torch.zeros(4, dp=ROWS)
    assert total_used(torch) == 0
    with pytest.raises(ZeroDivisionError), context() as torch:
        torch.zeros(1 // 0, dp=ROWS)


def test_a_tensor_that_goes_away_gives_its_memory_back() -> None:
    torch = context()
    one = torch.empty(PAGE, "i8", dp=ROWS)
    used = total_used(torch)
    for _ in range(5):
        torch.empty(PAGE, "i8", dp=ROWS)
    kept = torch.empty(PAGE, "i8", dp=ROWS)
    assert total_used(torch) == 2 * used
    del one, kept
    torch.cleanup()
    assert total_used(torch) == 0


def test_out_of_memory_leaves_nothing_behind() -> None:
    torch = context()
    slice_bytes = torch.machine.addresses.slice_bytes
    first = torch.empty(slice_bytes // 2, "i8", dp=DPPolicy(num_cubes=1, num_pes=1))
    used = total_used(torch)
    with pytest.raises(Exception, match=r"tensor 't2'.*left|free"):
        torch.empty(slice_bytes, "i8", dp=DPPolicy(num_cubes=1, num_pes=1))
    assert total_used(torch) == used
    first.free()
    assert total_used(torch) == 0


def test_requests_have_unique_ids_and_a_status() -> None:
    torch = context(correlation_id="night run")
    torch.zeros(4, dp=ROWS)
    handles = torch.handles()
    assert [handle.request_id for handle in handles] == list(range(len(handles)))
    assert {handle.correlation_id for handle in handles} == {"night run"}
    assert all(torch.is_completed(handle) for handle in handles)
    completion = torch.wait(handles[0])
    assert completion == torch.wait(handles[0])
    assert (completion.ok, completion.error_code, completion.error_message) == (True, None, None)


def test_a_device_selector_names_sips_that_are_there() -> None:
    assert context("ahbm", "sip:1").device.sip_index == 1
    for wrong in ("sip:2", "sip:", "gpu", "sip:-1", 3):
        with pytest.raises(RequestError, match="'all' or 'sip:N' with N from 0 to 1"):
            context("ahbm", wrong)  # type: ignore[arg-type]


def test_a_context_for_one_sip_places_there() -> None:
    torch = context("ahbm", "sip:1")
    tensor = torch.empty(8, dp=DPPolicy(num_cubes=1, num_pes=2))
    assert {shard.home for shard in tensor.shards} == {PeCoord(1, 0, 0), PeCoord(1, 0, 1)}


def test_each_worker_has_a_device_of_its_own() -> None:
    torch = context("ahbm")
    found: list[tuple[int | None, list[int], int]] = []

    def worker(sip: int) -> None:
        torch.ahbm.set_device(sip)
        here.switch()
        tensor = torch.empty(4, dp=DPPolicy(num_cubes=1, num_pes=1))
        spread = torch.empty(4, dp=DPPolicy(sip="row_wise", num_cubes=1, num_pes=1))
        place = torch.accelerator.current_device_index()
        found.append((place, [shard.home.sip for shard in tensor.shards], len(spread.shards)))

    here = greenlet.getcurrent()
    workers = [greenlet(worker), greenlet(worker)]
    for sip, each in enumerate(workers):
        each.switch(sip)
    for each in workers:
        each.switch()
    # split by rows, a tensor of one axis is one row: the first SIP has it
    assert found == [(0, [0], 1), (1, [1], 1)]
    assert torch.ahbm.current_device() is None
    torch.accelerator.set_device_index(1)
    assert torch.ahbm.current_device() == 1
    with pytest.raises(RequestError, match="one of the SIPs 0, 1"):
        torch.ahbm.set_device(2)


class LikeATensor:
    """An integer as a tensor of one element is one."""

    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize("device", [1, np.int64(1), np.uint8(1), np.array(1), LikeATensor()])
def test_any_integer_names_a_device(device: Any) -> None:
    torch = context("ahbm")
    torch.ahbm.set_device(device)
    current = torch.ahbm.current_device()
    assert (current, type(current)) == (1, int)


@pytest.mark.parametrize("device", [True, np.True_, 1.0, "1", None, np.array([1, 0]), -1])
def test_what_is_no_integer_names_no_device(device: Any) -> None:
    with pytest.raises(RequestError, match=r"set_device: found .*, expected one of the SIPs 0, 1"):
        context("ahbm").ahbm.set_device(device)


def test_a_context_without_data_has_times_and_integers() -> None:
    with_data, without = context(), context(data=False)
    for torch in (with_data, without):
        floats = torch.zeros((64, 64), dp=ROWS)
        floats.copy_(torch.from_numpy(np.ones((64, 64), np.float16)))
        pages = torch.full(64, 7, "i32", dp=ROWS)
        assert pages.tolist() == [7] * 64
    assert with_data.now_ps == without.now_ps
    with pytest.raises(TensorError, match="data=True"):
        floats.numpy()


def test_a_tensor_of_another_context_is_refused() -> None:
    here, there = context(), context()
    tensor = there.zeros(4, dp=ROWS)

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x)

    with pytest.raises(KernelError, match="tensor 't1' of another context"):
        here.launch(kernel, tensor)
    with pytest.raises(KernelError, match="which is on the host"):
        here.launch(kernel, here.from_numpy(np.zeros(4)))


def test_a_value_that_its_dtype_cannot_hold_is_refused() -> None:
    torch = context()
    with pytest.raises(TensorError, match="300"):
        torch.full(4, 300, "u8", dp=ROWS)
    assert (torch.handles(), total_used(torch)) == ([], 0)


def test_looking_at_a_tensor_leaves_the_clock_alone() -> None:
    torch = context()
    tensor = torch.zeros(4, "i32", dp=DPPolicy(num_pes=1, num_cubes=1))

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, 5)

    pending = torch.launch(kernel, tensor, wait=False)
    before_ps = torch.now_ps
    assert "[0, 0, 0, 0]" in repr(tensor)
    assert torch.now_ps == before_ps
    pending.wait()
    assert tensor[0] == 5
