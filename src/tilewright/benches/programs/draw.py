"""Inputs of programs: the same for the same seed."""

from typing import Annotated, Any, Literal

import ml_dtypes
import numpy as np

from tilewright.host import RuntimeContext

__all__ = ("Draw", "Dtype", "DtypeName")

Array = np.ndarray[Any, Any]

DtypeName = Literal["f16", "bf16", "f32"]
Dtype = Annotated[DtypeName, "of inputs and results; products and sums are f32"]

_STORAGE: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
}


class Draw:
    """Arrays drawn one after the other. In timing-only mode floats are zeros that nobody reads.

    Integers come from ``integers``, a generator of their own: they are the same in both modes.
    """

    def __init__(self, torch: RuntimeContext) -> None:
        self._floats, self.integers = np.random.default_rng(torch.seed).spawn(2)
        self._carries_data = torch.carries_data

    def normal(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Of the standard normal distribution, rounded to the dtype."""
        if not self._carries_data:
            return np.broadcast_to(np.zeros((), _STORAGE[dtype]), shape)
        return self._floats.standard_normal(shape, np.float32).astype(_STORAGE[dtype])
