from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.block import GemmBlock
from tilewright.device.gemm import GEMM_PACE, DotArray, GemmUnit, SystolicArray, build_gemm
from tilewright.errors import ServerError, UnitError
from tilewright.machine.spec import DotArraySpec, SystolicSpec

PS_PER_S = 10**12
KINDS = {"dot_array": DotArraySpec, "systolic": SystolicSpec}

sizes = st.integers(1, 400)
products = st.tuples(sizes, sizes, sizes)
dtypes = st.sampled_from(sorted(GEMM_PACE))
clocks = st.integers(10**6, 10**12)
kinds: st.SearchStrategy[Literal["dot_array", "systolic"]] = st.sampled_from(
    ["dot_array", "systolic"]
)


@dataclass
class Scripted:
    """A user's block that returns what the test wants."""

    answer: object
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        self.asked.append((m, n, k, dtype))
        return self.answer  # type: ignore[return-value]


@dataclass
class ScriptedLoop(Scripted):
    parts: object = ()

    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        self.asked.append((m, n, k_tiles, dtype))
        return self.parts  # type: ignore[return-value]


def unit_of(block: GemmBlock) -> GemmUnit:
    return GemmUnit("pe0.gemm", 10**9, block)


def test_the_default_unit_is_a_dot_array_with_8_192_teraflops() -> None:
    unit = build_gemm("pe0.gemm", DotArraySpec())
    assert isinstance(unit.block, DotArray)
    peaks = {dtype: unit.peak_flop_per_s(dtype) for dtype in ("f16", "bf16", "i8", "f8e4m3", "f32")}
    full = 8_192 * 10**9
    assert peaks == {
        "f16": full,
        "bf16": full,
        "i8": 2 * full,
        "f8e4m3": 2 * full,
        "f32": full // 4,
    }


def test_a_systolic_array_is_chosen_by_name_and_has_one_multiply_add_a_cell() -> None:
    unit = build_gemm("pe0.gemm", SystolicSpec(rows=128, columns=128))
    assert isinstance(unit.block, SystolicArray)
    assert unit.peak_flop_per_s("f16") == 2 * 128 * 128 * 10**9


@given(kind=kinds, product=products, dtype=dtypes, hz=clocks)
def test_a_hold_ends_at_the_clock_edge_of_its_cycles(
    kind: Literal["dot_array", "systolic"], product: tuple[int, int, int], dtype: str, hz: int
) -> None:
    unit = build_gemm("pe0.gemm", KINDS[kind](hz=hz))
    exact_ps = Fraction(unit.block.cycles(*product, dtype) * PS_PER_S, hz)
    assert unit.hold_ps(*product, dtype) == ceil(exact_ps)


@given(kind=kinds, product=products, dtype=dtypes, hz=clocks)
def test_no_product_is_faster_than_its_operations_at_the_peak(
    kind: Literal["dot_array", "systolic"], product: tuple[int, int, int], dtype: str, hz: int
) -> None:
    unit = build_gemm("pe0.gemm", KINDS[kind](hz=hz))
    m, n, k = product
    peak = unit.peak_flop_per_s(dtype)
    assert peak is not None
    assert unit.hold_ps(m, n, k, dtype) >= 2 * m * n * k * PS_PER_S / peak


def utilisation_of(unit: GemmUnit, m: int, n: int, k: int, dtype: str) -> Fraction:
    """Share of the peak that a product reaches."""
    peak = unit.peak_flop_per_s(dtype)
    assert peak is not None
    return 2 * m * n * k * unit.hz / (peak * unit.block.cycles(m, n, k, dtype))


@pytest.mark.parametrize("kind", ["dot_array", "systolic"])
def test_a_long_product_tends_to_the_peak(kind: Literal["dot_array", "systolic"]) -> None:
    unit = build_gemm("pe0.gemm", KINDS[kind]())
    for dtype in GEMM_PACE:
        utilisation = utilisation_of(unit, 16, 16, 2**20, dtype)
        assert Fraction(99, 100) < utilisation < 1


@pytest.mark.parametrize(
    ("m", "n", "k", "side", "stated"),
    [
        pytest.param(64, 64, 64, 16, "0.681", id="GE1"),
        pytest.param(128, 128, 128, 128, "0.336", id="GE2"),
        pytest.param(1024, 1024, 1024, 128, "0.801", id="GE3"),
        pytest.param(100, 70, 256, 32, "0.459", id="GE4"),
        pytest.param(1, 4096, 4096, 128, "0.0074", id="GE5"),
    ],
)
def test_a_systolic_array_has_the_utilisation_of_the_published_tables(
    m: int, n: int, k: int, side: int, stated: str
) -> None:
    unit = build_gemm("pe0.gemm", SystolicSpec(rows=side, columns=side))
    utilisation = utilisation_of(unit, m, n, k, "f16")
    cycles = unit.block.cycles(m, n, k, "f16")
    # the tables divide by the index of the last cycle, we by the number of cycles
    as_in_the_table = utilisation * cycles / (cycles - 1)
    half_a_digit = Fraction(1, 2 * 10 ** len(stated.split(".")[1]))
    assert abs(as_in_the_table - Fraction(stated)) <= half_a_digit


@given(
    kind=kinds,
    hz=clocks,
    dtype=dtypes,
    product=st.tuples(sizes, sizes),
    k_tiles=st.lists(sizes, min_size=1, max_size=20),
)
def test_the_parts_of_a_loop_add_up_to_one_rounding(
    kind: Literal["dot_array", "systolic"],
    hz: int,
    dtype: str,
    product: tuple[int, int],
    k_tiles: list[int],
) -> None:
    unit = build_gemm("pe0.gemm", KINDS[kind](hz=hz))
    parts_ps = unit.loop_holds_ps(*product, k_tiles, dtype)
    assert isinstance(unit.block, DotArray | SystolicArray)
    cycles = sum(unit.block.loop_cycles(*product, k_tiles, dtype))
    assert sum(parts_ps) == ceil(Fraction(cycles * PS_PER_S, hz))
    assert len(parts_ps) == len(k_tiles)
    assert min(parts_ps) >= 1


def test_full_tiles_in_a_loop_cost_as_much_as_the_whole_product() -> None:
    unit = build_gemm("pe0.gemm", DotArraySpec())
    assert unit.loop_holds_ps(32, 32, [64, 64], "f16") == (16_000, 32_000)
    assert unit.hold_ps(32, 32, 128, "f16") == 48_000


def test_a_block_that_knows_no_loop_pays_its_law_for_each_tile() -> None:
    block = Scripted(5)
    assert unit_of(block).loop_holds_ps(7, 8, [1, 2], "f16") == (5_000, 5_000)
    assert block.asked == [(7, 8, 1, "f16"), (7, 8, 2, "f16")]


def test_a_block_that_knows_no_peak_has_none() -> None:
    unit = unit_of(Scripted(5))
    assert unit.hold_ps(1, 1, 1, "any text") == 5_000
    assert unit.peak_flop_per_s("f16") is None


@pytest.mark.parametrize("answer", [0, -1, 1.5, True, None])
def test_nonsense_from_a_user_s_block_is_refused(answer: object) -> None:
    expected = rf"pe0\.gemm: found {answer} returned for cycles\(2, 3, 4, 'f16'\), expected an int"
    with pytest.raises(ServerError, match=expected):
        unit_of(Scripted(answer)).hold_ps(2, 3, 4, "f16")


@pytest.mark.parametrize("parts", [(), (1,), [1, 2], (1, 2, 3), (1, 0), (1, 2.0), None])
def test_nonsense_parts_of_a_loop_are_refused(parts: object) -> None:
    with pytest.raises(ServerError, match=r"returned for loop_cycles\(1, 1, \[4, 4\], 'f16'\)"):
        unit_of(ScriptedLoop(1, parts=parts)).loop_holds_ps(1, 1, [4, 4], "f16")
    unit = unit_of(ScriptedLoop(1, parts=(2, 3)))
    assert unit.loop_holds_ps(1, 1, [4, 4], "f16") == (2_000, 3_000)


def test_a_user_s_block_is_never_asked_for_a_product_without_work() -> None:
    block = Scripted(1)
    unit = unit_of(block)
    with pytest.raises(UnitError, match=r"pe0\.gemm: found m = 0"):
        unit.hold_ps(0, 1, 1, "f16")
    with pytest.raises(UnitError, match="found number of k tiles = 0"):
        unit.loop_holds_ps(1, 1, [], "f16")
    assert block.asked == []
