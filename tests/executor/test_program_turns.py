"""The programs of one PE, one after the other: none is taken for another one."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.language.bed import Bed
from tilewright.engine import EngineKind
from tilewright.errors import KernelError

BLOCK, NUM_PROGRAMS = 256, 6


@pytest.mark.parametrize("engine", EngineKind)
def test_what_outlives_its_program_gives_the_next_no_room(engine: EngineKind) -> None:
    """Six tiles fit: the second program has them all when it lets go of the first one's."""
    kept: list[Any] = []

    def kernel(x_ptr: Any) -> None:
        places = tl.arange(0, 4096)
        if tl.program_id(0) == 0:
            kept.extend(tl.load(x_ptr + places) for _ in range(3))
            return
        held = [tl.load(x_ptr + places) for _ in range(6)]
        kept.clear()
        held.append(tl.load(x_ptr + places))

    bed = Bed("pe.tcm.capacity_bytes=131072", "pe.tcm.reserved_bytes=32768", engine=engine)
    x = bed.place(np.ones(4096, np.float32))
    with pytest.raises(KernelError, match=r"with 0 of 98304 bytes of the TCM free") as caught:
        bed.launch(kernel, x, grid=(2,))
    assert "program (1,) of kernel" in caught.value.where


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
