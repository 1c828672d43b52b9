"""Sizes that cannot be are refused by name, before anything is placed."""

from typing import Any

import pytest

from tests.programs.small import run_small
from tilewright.errors import BenchError
from tilewright.programs import PROGRAMS

COUNTS_FROM_ZERO = {"sips", "cubes", "pes", "shift"}


@pytest.mark.parametrize(
    ("program", "parameter"),
    [
        (program.name, parameter.name)
        for program in PROGRAMS.values()
        for parameter in program.parameters
        if parameter.kind is int and parameter.name not in COUNTS_FROM_ZERO
    ],
)
def test_a_size_below_one_is_refused(program: str, parameter: str) -> None:
    with pytest.raises(BenchError, match=rf"{parameter}=0|0 (query|KV) heads|of 0 channels|for 0"):
        run_small(program, **dict[str, Any]({parameter: 0}))


@pytest.mark.parametrize("program", ["softmax", "layer_norm"])
def test_rows_for_every_pe_are_asked_for(program: str) -> None:
    with pytest.raises(BenchError, match="rows=3 for 4 PEs, expected at least one for each PE"):
        run_small(program, rows=3)


def test_a_shift_may_be_any_number() -> None:
    for shift in (-9, 0, 1000):
        assert run_small("va_offset_verify", shift=shift).values_ok is True
