"""Products in the stored type: which types those are, and numbers with more bits in parts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.attention.codegen.on_machine import ONE_PE, small_machine
from tilewright.attention.codegen.expression.narrow_dot import dot_dtype
from tilewright.attention.codegen.source.helpers import PART_HELPERS
from tilewright.attention.graph import DType
from tilewright.host import RuntimeContext

KERNEL = """
def sum_of_parts(x, out, unit_out, ROWS, COLUMNS):
    place = tl.arange(0, ROWS)[None, :, None] * COLUMNS + tl.arange(0, COLUMNS)[None, None, :]
    parts, unit = {narrow}_parts(tl.load(x + place))
    total = tl.sum(parts.to(tl.float32), 0) * tl.reshape(unit, (1, 1))
    tl.store(out + tl.reshape(place, (ROWS, COLUMNS)), total)
    tl.store(unit_out + tl.zeros((1, 1, 1), tl.int32), unit)
"""
VALUES = {
    "near 1": np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32),
    "small": (np.random.default_rng(1).normal(size=(4, 32)) * 2.0**-30).astype(np.float32),
    "beyond float16": (np.random.default_rng(2).normal(size=(4, 32)) * 2.0**20).astype(np.float32),
    "zeros": np.zeros((4, 32), np.float32),
}


def parts_of(value: Any, narrow: str) -> tuple[Any, float]:
    names: dict[str, Any] = {"tl": tl, "__name__": "parts"}
    names["triton"] = SimpleNamespace(jit=lambda function: function)
    exec("\n".join(PART_HELPERS) + KERNEL.format(narrow=narrow), names)
    with RuntimeContext(small_machine()) as torch:
        x, out = (torch.empty(value.shape, "f32", dp=ONE_PE) for _ in range(2))
        unit = torch.empty(1, "f32", dp=ONE_PE)
        x.copy_(value, timed=False)
        torch.launch(names["sum_of_parts"], x, out, unit, *value.shape, grid=(1,))
        return out.numpy(timed=False), float(unit.numpy(timed=False)[0])


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", VALUES)
def test_parts_have_all_bits_of_a_number(kind: str, narrow: str) -> None:
    """One float16 alone would be wrong by up to 2**-11 of the number, two by 2**-22."""
    value = VALUES[kind]
    found, unit = parts_of(value, narrow)
    assert np.abs(found - value).max() <= 2.0**-24 * np.abs(value).max()
    assert np.log2(unit) == np.floor(np.log2(unit)), "products by it would be rounded"


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((DType.FLOAT16, DType.FLOAT16), DType.FLOAT16),
        ((DType.BFLOAT16, DType.FLOAT8_E4M3), DType.BFLOAT16),
        ((DType.FLOAT16, DType.BFLOAT16), DType.FLOAT32),
        ((DType.FLOAT16, DType.FLOAT32), DType.FLOAT32),
        ((DType.FLOAT16, DType.INT8), DType.FLOAT32),
    ],
)
def test_operands_are_multiplied_in_a_type_that_holds_both(
    dtypes: tuple[DType, ...], expected: DType
) -> None:
    assert dot_dtype(*dtypes) is expected
