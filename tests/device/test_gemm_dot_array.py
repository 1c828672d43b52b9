import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.gemm import GEMM_PACE, DotArray
from tilewright.errors import RegistryError, UnitError
from tilewright.machine.spec import DotArraySpec
from tilewright.units import DTYPE_BITS
from tilewright.validation.gemm.model import run_dot_array

sizes = st.integers(1, 12)
products = st.tuples(sizes, sizes, sizes)
dtypes = st.sampled_from(sorted(GEMM_PACE))


@st.composite
def arrays(draw: st.DrawFn) -> DotArray:
    counts = st.integers(1, 5)
    spec = DotArraySpec(
        rows=draw(counts),
        columns=draw(counts),
        depth=draw(counts),
        fill_cycles=draw(st.integers(0, 20)),
        narrow_speed=draw(counts),
        wide_slowdown=draw(counts),
    )
    return DotArray("pe0.gemm", spec)


def default_array(*, fill_cycles: int = 16) -> DotArray:
    return DotArray("pe0.gemm", DotArraySpec(fill_cycles=fill_cycles))


@given(array=arrays(), product=products, dtype=dtypes)
def test_an_array_that_enumerates_its_steps_takes_as_many_cycles(
    array: DotArray, product: tuple[int, int, int], dtype: str
) -> None:
    m, n, k = product
    spec = array.spec
    deeper = spec.narrow_speed if dtype in ("f8e4m3", "f8e5m2", "i8", "u8") else 1
    run = run_dot_array(
        np.ones((m, k), np.int64),
        np.ones((k, n), np.int64),
        shape=(spec.rows, spec.columns, spec.depth * deeper),
        step_cycles=spec.wide_slowdown if dtype == "f32" else 1,
        fill_cycles=spec.fill_cycles,
    )
    assert array.cycles(m, n, k, dtype) == run.num_cycles


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "cycles"),
    [
        (16, 16, 16, "f16", 1),
        (17, 16, 16, "f16", 2),
        (16, 16, 17, "bf16", 2),
        (32, 32, 64, "f16", 16),
        (32, 32, 64, "i8", 8),
        (32, 32, 64, "f8e5m2", 8),
        (32, 16, 16, "u8", 2),  # two outputs of half a step each: K is what is rounded up
        (16, 16, 33, "f8e4m3", 2),
        (32, 32, 64, "f32", 64),
        (1, 1, 1, "f32", 4),
    ],
)
def test_the_default_unit_takes_its_law_s_cycles(
    m: int, n: int, k: int, dtype: str, cycles: int
) -> None:
    assert default_array(fill_cycles=0).cycles(m, n, k, dtype) == cycles
    assert default_array().cycles(m, n, k, dtype) == cycles + 16


@given(array=arrays(), product=products, dtype=dtypes)
def test_no_product_beats_the_peak(
    array: DotArray, product: tuple[int, int, int], dtype: str
) -> None:
    m, n, k = product
    assert 2 * m * n * k <= array.peak_flop_per_cycle(dtype) * array.cycles(m, n, k, dtype)


def test_full_steps_without_a_fill_reach_the_peak_of_every_dtype() -> None:
    array = default_array(fill_cycles=0)
    for dtype in GEMM_PACE:
        cycles = array.cycles(160, 160, 160, dtype)
        assert array.peak_flop_per_cycle(dtype) * cycles == 2 * 160**3


@given(array=arrays(), product=products, dtype=dtypes, more=st.lists(sizes, max_size=4))
def test_a_loop_over_k_pays_one_fill_and_pays_it_last(
    array: DotArray, product: tuple[int, int, int], dtype: str, more: list[int]
) -> None:
    m, n, k = product
    k_tiles = (*more, k)
    alone = [array.cycles(m, n, tile, dtype) for tile in k_tiles]
    parts = array.loop_cycles(m, n, k_tiles, dtype)
    fill = array.spec.fill_cycles
    assert parts == (*(cycles - fill for cycles in alone[:-1]), alone[-1])


@pytest.mark.parametrize("dtype", sorted(set(DTYPE_BITS) - set(GEMM_PACE)))
def test_a_dtype_that_it_cannot_multiply_is_refused_with_those_it_can(dtype: str) -> None:
    known = "one of bf16, f16, f32, f8e4m3, f8e5m2, i8, u8"
    with pytest.raises(RegistryError, match=rf"pe0\.gemm: found dtype '{dtype}', expected {known}"):
        default_array().cycles(1, 1, 1, dtype)
    with pytest.raises(RegistryError, match=f"found dtype '{dtype}'"):
        default_array().peak_flop_per_cycle(dtype)


@pytest.mark.parametrize(
    ("m", "n", "k", "found"),
    [(0, 1, 1, "m = 0"), (1, -2, 1, "n = -2"), (1, 1, 0, "k = 0"), (1.5, 1, 1, "m = 1.5")],
)
def test_a_product_without_work_is_refused(m: int, n: int, k: int, found: str) -> None:
    with pytest.raises(UnitError, match=f"found {found}, expected an int of at least 1"):
        default_array().cycles(m, n, k, "f16")


def test_a_loop_without_tiles_is_refused() -> None:
    with pytest.raises(UnitError, match="found number of k tiles = 0"):
        default_array().loop_cycles(1, 1, (), "f16")
