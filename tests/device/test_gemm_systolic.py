import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.gemm import GEMM_PACE, SystolicArray
from tilewright.errors import RegistryError, UnitError
from tilewright.machine.spec import SystolicSpec
from tilewright.validation.gemm.model import run_systolic

SEED = 20_260_801
NUM_SHAPES = 200
NARROW = ("f8e4m3", "f8e5m2", "i8", "u8")

sizes = st.integers(1, 300)
dtypes = st.sampled_from(sorted(GEMM_PACE))


def array_of(rows: int, columns: int, *, narrow: int = 2, wide: int = 4) -> SystolicArray:
    spec = SystolicSpec(rows=rows, columns=columns, narrow_speed=narrow, wide_slowdown=wide)
    return SystolicArray("pe0.gemm", spec)


def shapes() -> list[tuple[int, ...]]:
    """M, N, K, R, C and the narrow speed, from the smallest up to several ragged folds."""
    rng = np.random.default_rng(SEED)
    most = np.array([12, 12, 20, 6, 6, 3])
    return [tuple(map(int, row)) for row in rng.integers(1, most + 1, size=(NUM_SHAPES, 6))]


@pytest.mark.parametrize(("m", "n", "k", "rows", "columns", "narrow"), shapes())
def test_an_array_stepped_cycle_by_cycle_is_done_in_the_same_cycle(
    m: int, n: int, k: int, rows: int, columns: int, narrow: int
) -> None:
    rng = np.random.default_rng(SEED)
    left, right = rng.integers(-9, 10, size=(m, k)), rng.integers(-9, 10, size=(k, n))
    array = array_of(rows, columns, narrow=narrow)
    for dtype, products in (("f16", 1), ("i8", narrow)):
        run = run_systolic(left, right, rows=rows, columns=columns, products=products)
        assert np.array_equal(run.product, left @ right)
        assert array.cycles(m, n, k, dtype) == run.num_cycles
        assert array.last_cycle_index(m, n, k, dtype) == run.fold_ends[-1]


@pytest.mark.parametrize(
    ("m", "n", "k", "rows", "columns", "last_index"),
    [
        pytest.param(64, 64, 64, 16, 16, 1503, id="GE1"),
        pytest.param(128, 128, 128, 128, 128, 381, id="GE2"),
        pytest.param(1024, 1024, 1024, 128, 128, 81791, id="GE3"),
        pytest.param(100, 70, 256, 32, 32, 3815, id="GE4"),
        pytest.param(1, 4096, 4096, 128, 128, 139199, id="GE5"),
    ],
)
def test_the_published_tables_are_met_row_by_row(
    m: int, n: int, k: int, rows: int, columns: int, last_index: int
) -> None:
    array = array_of(rows, columns)
    assert array.last_cycle_index(m, n, k, "f16") == last_index
    assert array.cycles(m, n, k, "f16") == last_index + 1


@given(product=st.tuples(sizes, sizes, sizes), dtype=dtypes, rows=sizes, columns=sizes)
def test_no_product_beats_the_peak(
    product: tuple[int, int, int], dtype: str, rows: int, columns: int
) -> None:
    m, n, k = product
    array = array_of(rows, columns)
    assert 2 * m * n * k <= array.peak_flop_per_cycle(dtype) * array.cycles(m, n, k, dtype)


@given(product=st.tuples(sizes, sizes, sizes), wide=st.integers(1, 9))
def test_every_beat_of_a_wide_dtype_is_as_many_times_longer(
    product: tuple[int, int, int], wide: int
) -> None:
    array = array_of(16, 8, wide=wide)
    assert array.cycles(*product, "f32") == wide * array.cycles(*product, "f16")


@given(product=st.tuples(sizes, sizes), dtype=dtypes, k_tiles=st.lists(sizes, min_size=1))
def test_a_loop_over_k_is_skewed_once_per_fold(
    product: tuple[int, int], dtype: str, k_tiles: list[int]
) -> None:
    array = array_of(16, 8)
    parts = array.loop_cycles(*product, k_tiles, dtype)
    rounded = [k + k % 2 for k in k_tiles] if dtype in NARROW else k_tiles
    assert sum(parts) == array.cycles(*product, sum(rounded), dtype)
    assert len(parts) == len(k_tiles)


def test_what_has_no_law_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"pe0\.gemm: found dtype 'f64', expected one of bf16"):
        array_of(4, 4).cycles(1, 1, 1, "f64")
    with pytest.raises(UnitError, match=r"pe0\.gemm: found k = 0"):
        array_of(4, 4).cycles(1, 1, 0, "f16")
