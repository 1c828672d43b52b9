"""Tensors in the memories of a machine, through its links, page tables and allocators."""

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.placements import bits_of, draw_array, policies
from tilewright.host import DPPolicy, RuntimeContext, Split
from tilewright.language.dtype import DTYPES, DType
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.memory.address import MemoryKind, MemoryPlace

PAGE_BYTES = 4096


@cache
def two_sips() -> Machine:
    overrides = ["sip.count=2", "sip.columns=3", "sip.rows=1", f"pe.mmu.page_bytes={PAGE_BYTES}"]
    return build_machine(parse_machine("ahbm-small", overrides))


def is_clean(torch: RuntimeContext) -> bool:
    """No page is taken and none is mapped."""
    driver = torch.driver
    used = driver.space.statistics.used_bytes + sum(
        driver.memory.allocator(MemoryPlace(MemoryKind.HBM, pe)).statistics.used_bytes
        for pe in torch.machine.grid.pes()
    )
    return used == 0 and not any(len(mmu.table) for mmu in driver.mmus.values())


@settings(max_examples=25)
@given(
    data=st.data(),
    shape=st.lists(st.integers(0, 20), max_size=3).map(tuple),
    dtype=st.sampled_from(DTYPES),
)
def test_what_goes_to_the_machine_comes_back_and_leaves_nothing_behind(
    data: st.DataObject, shape: tuple[int, ...], dtype: DType
) -> None:
    torch = RuntimeContext(two_sips())
    policy = data.draw(policies(len(shape), PAGE_BYTES))
    array = draw_array(data, shape, dtype)
    tensor = torch.empty(shape, dtype, dp=policy).copy_(torch.from_numpy(array))
    assert bits_of(tensor.numpy()) == bits_of(array)
    moved = tensor.to(dp=DPPolicy(cube="replicate", num_sips=1))
    tensor.free()
    assert bits_of(moved.numpy()) == bits_of(array)
    moved.free()
    assert is_clean(torch)


def test_a_tensor_that_goes_away_is_given_back_before_the_next_is_made() -> None:
    torch = RuntimeContext(two_sips())
    policy = DPPolicy(pe=Split(0), num_sips=1, num_cubes=1)
    first = torch.zeros(8 * PAGE_BYTES, dtype="u8", dp=policy)
    address = first.address
    del first
    assert not is_clean(torch)
    second = torch.zeros(8 * PAGE_BYTES, dtype="u8", dp=policy)
    assert second.address == address
    second.free()
    assert is_clean(torch)


def test_a_tensor_over_sips_is_seen_from_both_of_them() -> None:
    def sum_all(x_ptr: object, out_ptr: object, num_elements: int, tl: object) -> None:
        x = tl.load(x_ptr, shape=(num_elements,), dtype="i32")  # type: ignore[attr-defined]
        tl.store(out_ptr, tl.sum(x, 0))  # type: ignore[attr-defined]

    torch = RuntimeContext(two_sips())
    rows = DPPolicy(sip="row_wise", num_cubes=1, num_pes=1)
    x = torch.empty((2, 1024), dtype="i32", dp=rows)
    x.copy_(np.arange(2048).reshape(2, 1024))
    assert x.placement.is_global
    for pe in x.placement.homes:
        out = torch.zeros(1, dtype="i32", dp=DPPolicy(num_sips=2, num_cubes=1, num_pes=1))
        torch.launch(sum_all, x, out, 2048, grid=(1,), on=[pe])
        assert out.local(pe).item() == 2047 * 1024
