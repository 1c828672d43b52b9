"""The programs of one PE, one after the other: none is taken for another one."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.language.bed import Bed
from tilewright.engine import EngineKind
from tilewright.errors import KernelError

BLOCK, NUM_PROGRAMS = 256, 6


@pytest.mark.parametrize("keeps", [False, True])
def test_values_that_outlive_their_program_change_nothing_for_the_next(keeps: bool) -> None:
    kept: list[Any] = []

    def kernel(x_ptr: Any, y_ptr: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        first = tl.load(x_ptr + places)
        second = tl.load(x_ptr + places) * 2
        kept.clear()  # those of the program before
        third = first + second
        tl.store(y_ptr + places, third - first)
        if keeps:
            kept.extend((first, second, third))

    found = []
    for engine in EngineKind:
        bed = Bed(engine=engine)
        values = np.arange(NUM_PROGRAMS * BLOCK, dtype=np.float32)
        x, y = bed.place(values), bed.place(np.zeros_like(values))
        result = bed.launch(kernel, x, y, grid=(NUM_PROGRAMS,))
        np.testing.assert_array_equal(bed.read(y), 2 * values)
        found.append((result.start_ps, result.end_ps, result.counters))
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", EngineKind)
def test_what_fails_later_names_the_program_that_asked_for_it(engine: EngineKind) -> None:
    """All programs are issued before the first store is served."""

    def combine(*_: Any) -> Any:
        raise ZeroDivisionError("in the middle")

    def kernel(x_ptr: Any, y_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, BLOCK))
        tl.store(y_ptr + tl.program_id(0), tl.reduce(x, 0, combine))

    bed = Bed(engine=engine)
    x, y = bed.place(np.ones(BLOCK, np.float32)), bed.place(np.ones(BLOCK, np.float32))
    with pytest.raises(KernelError) as caught:
        bed.launch(kernel, x, y, grid=(NUM_PROGRAMS,))
    assert caught.value.where.startswith("program (0,) of kernel on sip0.cube0.pe0, at ")
