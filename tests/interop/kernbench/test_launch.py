"""Launches of KernBench contexts: who runs, with which addresses and numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.interop.kernbench.contexts import context, two_sips
from tilewright.errors import AddressError, KernelError
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.placement import DPPolicy
from tilewright.interop.kernbench.tensor import Tensor

ONE = DPPolicy(num_cubes=1, num_pes=1)


def filled(torch: RuntimeContext, values: np.ndarray, dp: DPPolicy, dtype: str = "i32") -> Tensor:
    return torch.empty(values.shape, dtype, dp=dp).copy_(values)


def where_it_runs(torch: RuntimeContext, *tensors: Tensor) -> set[tuple[int, int]]:
    """Return cube and PE of every program of a launch with these tensors."""
    seen = []

    def kernel(one: int = 0, two: int = 0, tl: Any = None) -> None:
        del one, two
        seen.append((tl.program_id(1), tl.program_id(0)))

    torch.launch("where", kernel, *tensors)
    assert len(seen) == len(torch.engine.host.reports[-1].pes)
    return set(seen)


def test_a_kernel_runs_on_the_union_of_pes_in_the_union_of_cubes() -> None:
    torch = context()
    one = torch.empty((8,), dp=DPPolicy(num_cubes=1, num_pes=1))
    two = torch.empty((8,), dp=DPPolicy(num_cubes=3, num_pes=2))
    assert where_it_runs(torch, one) == {(0, 0)}
    assert where_it_runs(torch, one, two) == {(cube, pe) for cube in range(3) for pe in range(2)}
    assert where_it_runs(torch, torch.empty((16,), dp=DPPolicy(pe="column_wise"))) == {
        (cube, pe) for cube in range(4) for pe in range(4)
    }
    assert where_it_runs(torch) == {(0, 0)}


def test_addresses_are_integers_of_one_range_in_which_shards_follow_each_other() -> None:
    torch = context()
    values = np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    split = filled(torch, values, DPPolicy(cube="row_wise", pe="column_wise", num_cubes=2))
    out = torch.zeros((1, 48), "i32", dp=ONE)

    def kernel(src: int, dst: int, tl: Any) -> None:
        assert type(src) is int
        if (tl.program_id(0), tl.program_id(1)) == (0, 0):
            assert [(0 - 3) // 2, (0 - 1) % 4] == [-2, 3]
            tl.store(dst, tl.load(src, (1, 48), "i32"))  # reads the shards of 8 PEs

    torch.launch("gather", kernel, split, out)
    blocks = [values[rows, columns : columns + 2].ravel()
              for rows in (slice(0, 3), slice(3, 6)) for columns in range(0, 8, 2)]  # fmt: skip
    assert np.array_equal(out.numpy()[0], np.concatenate(blocks))


@settings(max_examples=25)
@given(cube=st.sampled_from(["replicate", "row_wise", "column_wise"]),
       pe=st.sampled_from(["row_wise", "column_wise"]), cubes=st.integers(1, 3),
       pes=st.integers(1, 4), rows=st.integers(1, 7), columns=st.integers(1, 7))  # fmt: skip
def test_every_pe_reads_every_shard_at_its_offset(
    cube: str, pe: str, cubes: int, pes: int, rows: int, columns: int
) -> None:
    torch = context(data=True)
    values = np.arange(rows * columns, dtype=np.int16).reshape(rows, columns)
    dp = DPPolicy(cube=cube, pe=pe, num_cubes=cubes, num_pes=pes)
    source = filled(torch, values, dp, "i16")
    out = torch.zeros((4, rows * columns), "i16", dp=DPPolicy(pe="row_wise", num_cubes=1))
    num_bytes = 2 * rows * columns

    def kernel(src: int, dst: int, count: int, tl: Any) -> None:
        if tl.program_id(1) == 0:
            tl.store(dst + tl.program_id(0) * 2 * count, tl.load(src, (1, count), "i16"))

    torch.launch("read", kernel, source, out, rows * columns, _auto_dim_remap=False)
    image = np.zeros(num_bytes, np.uint8)
    for shard in source.shards:
        span = slice(shard.offset_bytes, shard.offset_bytes + shard.nbytes)
        image[span] = _bytes_of(torch, shard)
    expected = np.frombuffer(image.tobytes(), np.int16)
    assert np.array_equal(out.numpy(), np.broadcast_to(expected, out.shape))
    assert sorted(expected) == list(range(rows * columns))


def _bytes_of(torch: RuntimeContext, shard: Any) -> Any:
    driver = torch.engine.host.driver
    place, offset = driver.memory.place_of(shard.pa)
    data = np.empty((1, shard.nbytes), np.uint8)
    driver.memory.storage(place).read_segments(data, offset, shard.nbytes)
    return data[0]


def test_pes_of_cubes_without_a_shard_see_a_split_tensor_of_their_sip_too() -> None:
    torch = context()
    values = np.arange(32, dtype=np.int32).reshape(4, 8)
    out = torch.zeros((4, 8), "i32", dp=DPPolicy(cube="row_wise", num_pes=1))

    def kernel(src: int, dst: int, tl: Any) -> None:
        at = tl.program_id(1) * 32
        tl.store(dst + at, tl.load(src + at, (8,), "i32"))

    for dp in (DPPolicy(cube="row_wise", num_cubes=2, num_pes=1),
               DPPolicy(pe="row_wise", num_cubes=1)):  # fmt: skip
        torch.launch("read", kernel, filled(torch, values, dp), out.copy_(0 * values))
        assert np.array_equal(out.numpy()[:, :], values)
    whole = filled(torch, values, ONE)  # which no unit splits: its cube alone sees it
    with pytest.raises(AddressError, match=r"tensor t4 .* on sip0.cube1.pe0, which has nothing"):
        torch.launch("read", kernel, whole, out)


def test_the_shard_of_another_cube_takes_longer_than_ones_own() -> None:
    def time_of(cube: int) -> float:
        torch = context()
        split = torch.zeros((4, 2048), "f16", dp=DPPolicy(cube="row_wise", num_pes=1))

        def kernel(src: int, tl: Any) -> None:
            if tl.program_id(1) == 0:
                tl.load(src + cube * 4096, (1, 2048), "f16")

        torch.launch("read", kernel, split)
        return float(torch.traces[-1]["execution_ns"])

    assert time_of(0) < time_of(1) < time_of(3)


def test_an_address_past_a_tensor_or_of_another_sip_is_an_error() -> None:
    torch = context(two_sips())
    halves = torch.zeros((2, 8), "f16", dp=DPPolicy(sip="row_wise", num_cubes=1, num_pes=1))

    def past(src: int, tl: Any) -> None:
        tl.load(src, (1, 9), "f16")

    with pytest.raises(AddressError, match="tensor t1"):
        torch.launch("past", past, halves)


def test_each_sip_sees_its_part_as_the_start() -> None:
    torch = context(two_sips())
    values = np.arange(16, dtype=np.int32).reshape(2, 8)
    halves = filled(torch, values, DPPolicy(sip="row_wise", num_cubes=1, num_pes=1))

    def double(src: int, tl: Any) -> None:
        block = tl.load(src, (1, 8), "i32")
        tl.store(src, block + block)

    handle = torch.launch("double", double, halves)
    assert handle == torch.handles()[-1]
    assert np.array_equal(halves.numpy(), 2 * values)


def test_a_deferred_launch_gives_the_handles_of_all_sips_and_waits_for_none() -> None:
    torch = context(two_sips())
    tensor = torch.zeros((2, 8), "i32", dp=DPPolicy(sip="row_wise", num_cubes=1, num_pes=1))

    def one(src: int, tl: Any) -> None:
        tl.store(src, tl.load(src, (1, 8), "i32") + 1)

    deferred = torch.launch("one", one, tensor, _defer_wait=True)
    assert isinstance(deferred, list)
    assert [(sip, fields["phase"]) for _, sip, fields in deferred] == [(0, "kernel"), (1, "kernel")]
    assert not any(torch.is_completed(handle) for handle, _, _ in deferred)
    for handle, _, fields in deferred:
        assert torch.wait(handle, _meta=fields).ok
    assert (tensor.numpy() == 1).all()


# -- numbers ---------------------------------------------------------------------------------------


def numbers_seen(torch: RuntimeContext, *args: Any, **kwargs: Any) -> list[Any]:
    seen: list[Any] = []

    def kernel(a: int, x: Any, y: Any = -1, tl: Any = None, *, z: Any = None) -> None:
        del a, z
        if (tl.program_id(0), tl.program_id(1)) == (0, 0):
            seen.extend((x, y))

    torch.launch("numbers", kernel, *args, **kwargs)
    return seen[:2]


def test_integers_that_are_sizes_of_cube_splits_become_local_and_are_noted() -> None:
    torch = context()
    split = torch.empty((80, 64), dp=DPPolicy(cube="row_wise", pe="column_wise"))
    assert numbers_seen(torch, split, 80, 64) == [20, 64]  # a split over PEs does not count
    (note,) = torch.engine.host.notes
    assert note == (
        "launch 'numbers': argument 1 is 20 in the place of 80: tensor 't1' splits that size over "
        "4 cubes"
    )
    assert numbers_seen(torch, split, 80, 64, _auto_dim_remap=False) == [80, 64]
    assert numbers_seen(torch, split, 80.0, 81) == [80.0, 81]
    assert len(torch.engine.host.notes) == 1


def test_the_counts_of_the_policy_decide() -> None:
    torch = context()
    split = torch.empty((80, 64), dp=DPPolicy(cube="row_wise", num_cubes=2))
    assert numbers_seen(torch, split, 80) == [40, -1]


def test_sip_and_cube_splits_of_one_axis_multiply() -> None:
    torch = context(two_sips())
    split = torch.empty((8, 48), dp=DPPolicy(sip="column_wise", cube="column_wise"))
    assert numbers_seen(torch, split, 48, 8)[:2] == [12, 8]
    flat = torch.empty((48,), dp=DPPolicy(cube="column_wise"))
    assert numbers_seen(torch, flat, 48) == [24, -1]


def test_a_size_that_another_tensor_has_as_a_whole_is_replaced_and_told() -> None:
    torch = context()
    whole, split = (
        torch.empty((64, 64), dp=DPPolicy()),
        torch.empty((16, 64), dp=DPPolicy(cube="column_wise")),
    )

    def kernel(a: int, b: int, n: int, tl: Any) -> None:  # noqa: ARG001
        assert n == 16

    torch.launch("both", kernel, whole, split, 64)
    assert torch.engine.host.notes[0].endswith("4 cubes; tensor 't1' has that size as a whole")


def test_a_size_that_does_not_divide_is_refused_if_it_is_an_argument() -> None:
    torch = context()
    uneven = torch.empty((81, 64), dp=DPPolicy(cube="row_wise"))
    words = r"launch 'numbers': found the argument 81, a size of tensor 't1' split over 4 cubes"
    with pytest.raises(ValueError, match=words):
        numbers_seen(torch, uneven, 81)
    assert numbers_seen(torch, uneven, 64) == [64, -1]
    assert numbers_seen(torch, uneven, 81, _auto_dim_remap=False) == [81, -1]


def test_two_tensors_that_make_one_number_two_sizes_are_refused() -> None:
    torch = context()
    rows = torch.empty((64, 8), dp=DPPolicy(cube="row_wise"))
    columns = torch.empty((8, 64), dp=DPPolicy(cube="column_wise", num_cubes=2))

    def kernel(a: int, b: int, n: int, tl: Any) -> None: ...

    with pytest.raises(ValueError, match=r"tensor 't1' makes 16 \(4 cubes\) and tensor 't2' 32"):
        torch.launch("both", kernel, rows, columns, 64)


@pytest.mark.parametrize("value", [None, "f16", (1, 2), np.zeros(2)])
def test_arguments_that_kernbench_drops_are_refused(value: object) -> None:
    torch = context()
    with pytest.raises(KernelError, match=r"launch 'numbers': found argument 1 = .*of type"):
        numbers_seen(torch, torch.empty((4,), dp=ONE), value)


def test_numbers_by_keyword_count_by_their_order() -> None:
    torch = context()
    tensor = torch.empty((4,), dp=ONE)
    assert numbers_seen(torch, tensor, x=5, y=6) == [5, 6]
    assert numbers_seen(torch, tensor, anything=5, other=6) == [5, 6]
    assert numbers_seen(torch, tensor, np.int64(5)) == [5, -1]
    with pytest.raises(KernelError, match=r"found y= as argument 1, since keywords count"):
        numbers_seen(torch, tensor, y=6, x=5)
    with pytest.raises(KernelError, match="the tensor x= by keyword"):
        numbers_seen(torch, tensor, x=tensor)


def test_a_tensor_without_elements_is_refused() -> None:
    torch = context()
    empty = torch.zeros((0, 4), dp=ONE)
    with pytest.raises(
        KernelError, match=r"argument 0, tensor 't1' of shape \(0, 4\), which no PE"
    ):
        numbers_seen(torch, empty, 1)


def test_a_tensor_of_the_host_is_refused() -> None:
    torch = context()
    host = torch.from_numpy(np.zeros(4, np.float16))
    with pytest.raises(KernelError, match="argument 0, tensor 'host' on the host"):
        numbers_seen(torch, host, 1)
