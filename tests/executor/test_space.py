"""What a program's values occupy: registers, then the TCM, then an error that names the tiles."""

from typing import Any

import numpy as np
import pytest

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.errors import KernelError

TILE = 64 * 64 * 4
FEW_REGISTERS = "pe.registers.capacity_bytes=32768"  # two tiles
SMALL_TCM = ("pe.tcm.capacity_bytes=131072", "pe.tcm.reserved_bytes=32768")  # six tiles


def tile(ptr: Any) -> Any:
    return tl.load(ptr + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :])


def holds_many(x_ptr: Any, count: Any) -> None:
    """Computes tiles, keeps them all, then uses them all."""
    x = tile(x_ptr)
    kept = [x + i for i in range(count)]
    total = kept[0]
    for each in kept[1:]:
        total = total + each
    places = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(x_ptr + places, total)


def run(bed: Bed, kernel: Any, *args: Any) -> Any:
    x = bed.place(np.ones((64, 64), np.float32))
    return bed.launch(kernel, x, *args), bed.read(x)


def test_values_beyond_the_registers_spill_and_take_longer() -> None:
    few, found = run(Bed(FEW_REGISTERS), holds_many, 6)
    many, same = run(Bed(), holds_many, 6)
    assert many.counters.spilled_bytes == 0
    assert few.counters.spilled_bytes >= 4 * TILE  # seven tiles are held where two fit
    assert few.latency_ps > many.latency_ps
    np.testing.assert_array_equal(found, same)
    np.testing.assert_array_equal(found, np.full((64, 64), 6 + 15, np.float32))


def test_more_live_values_spill_more() -> None:
    spilled = [
        run(Bed(FEW_REGISTERS), holds_many, count)[0].counters.spilled_bytes
        for count in (1, 3, 5, 7)
    ]
    assert spilled == sorted(set(spilled))


def test_tiles_that_do_not_fit_the_tcm_are_named_with_their_lines() -> None:
    def kernel(x_ptr: Any) -> None:
        kept = []
        for _ in range(7):
            kept.append(tile(x_ptr))  # a line of its own

    with pytest.raises(KernelError) as caught:
        run(Bed(*SMALL_TCM), kernel)
    found = caught.value.found
    assert found.startswith(
        f"a tile fp32[64, 64] of {TILE} bytes with 0 of 98304 bytes of the TCM free; held: "
    )
    assert found.count(f"fp32[64, 64] ({TILE} bytes, {__file__}:") == 6
    assert "in tile" in found
    assert caught.value.fix == "use smaller tiles, or let go of some earlier"


def test_one_tile_larger_than_the_tcm_is_refused_with_nothing_held() -> None:
    def kernel(x_ptr: Any) -> None:
        tl.load(x_ptr + tl.arange(0, 32768) * 0)

    with pytest.raises(KernelError, match=r"a tile fp32\[32768\] of 131072 .*; held: nothing"):
        run(Bed(*SMALL_TCM), kernel)


def test_results_that_spilled_are_named_by_their_bytes() -> None:
    def kernel(x_ptr: Any) -> None:
        values = [tl.exp(tile(x_ptr)) for _ in range(4)]
        values.append(tile(x_ptr))
        tl.load(x_ptr + tl.arange(0, 16384) * 0)

    with pytest.raises(KernelError) as caught:
        run(Bed("pe.registers.capacity_bytes=1024", *SMALL_TCM), kernel)
    rest_bytes = 4 * TILE  # the first tile has taken the registers
    assert caught.value.found.endswith(
        f"; {rest_bytes} bytes of results that the registers (1024 bytes) have no room for"
    )


def test_tiles_that_are_let_go_make_room() -> None:
    def kernel(x_ptr: Any) -> None:
        for _ in range(20):
            tile(x_ptr)

    result, _ = run(Bed(*SMALL_TCM), kernel)
    assert result.counters.loads == 20


def test_a_loop_of_loads_runs_ahead_as_far_as_there_is_room() -> None:
    def kernel(x_ptr: Any) -> None:
        for _ in range(20):
            tile(x_ptr)

    narrow, _ = run(Bed("pe.tcm.capacity_bytes=49152", "pe.tcm.reserved_bytes=32768"), kernel)
    wide, _ = run(Bed(), kernel)
    assert narrow.latency_ps > wide.latency_ps
