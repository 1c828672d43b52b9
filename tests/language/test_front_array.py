"""Arrays that loads fill are used again, but never while somebody can see their elements."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind

ROWS, COLUMNS = 8, 16


def hold_some(x_ptr: Any, out_ptr: Any, steps: tuple[tuple[int, int], ...]) -> None:
    """Each step loads a row into a slot; the row before it is stored through a view, or dropped."""
    slots: list[Any] = [None] * 4
    places = tl.arange(0, COLUMNS)
    for number, (slot, row) in enumerate(steps):
        if slots[slot] is not None and number % 3:
            tl.store(out_ptr + number * COLUMNS + places[None, :], slots[slot])
        slots[slot] = tl.load(x_ptr + row * COLUMNS + places)[None, :]


@needs_both_engines
@settings(max_examples=25)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, ROWS - 1)), min_size=1, max_size=40)
)
def test_stored_rows_are_those_that_were_loaded(steps: list[tuple[int, int]]) -> None:
    seen = []
    for kind in EngineKind:
        bed = Bed(engine=kind)
        x = bed.place(np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS))
        out = bed.place(np.zeros((len(steps), COLUMNS), np.float32))
        result = bed.launch(hold_some, x, out, tuple(steps), grid=(2,))
        seen.append((result, bed.read(out).tobytes()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("engine", EngineKind)
def test_elements_that_python_has_read_stay_as_they_were(engine: EngineKind) -> None:
    read: list[Any] = []

    def kernel(x_ptr: Any) -> None:
        for row in range(ROWS):
            block = tl.load(x_ptr + row * COLUMNS + tl.arange(0, COLUMNS))
            read.append(block.program.elements(block))

    bed = Bed(engine=engine)
    values = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    bed.launch(kernel, bed.place(values))
    np.testing.assert_array_equal(np.stack(read), values)
