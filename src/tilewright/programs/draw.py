"""Inputs of programs: the same for the same seed."""

import math
from typing import Annotated, Any, Literal

import ml_dtypes
import numpy as np

from tilewright.errors import OutOfMemoryError
from tilewright.host import RuntimeContext

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
    An array that all HBM of the machine has no room for is an OutOfMemoryError.
    """

    def __init__(self, torch: RuntimeContext) -> None:
        self._floats, self.integers = np.random.default_rng(torch.seed).spawn(2)
        self._carries_data = torch.carries_data
        self._hbm_bytes = torch.machine.grid.num_cubes * torch.machine.spec.cube.hbm.capacity_bytes

    def normal(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Return values of the standard normal distribution, rounded to the dtype."""
        self.check_room(shape, _STORAGE[dtype])
        if not self._carries_data:
            return np.broadcast_to(np.zeros((), _STORAGE[dtype]), shape)
        return self._floats.standard_normal(shape, np.float32).astype(_STORAGE[dtype])

    def check_room(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise OutOfMemoryError if all HBM of the machine is smaller than an array."""
        num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if num_bytes > self._hbm_bytes:
            found = f"an input of shape {shape}: {num_bytes} bytes"
            expected = f"at most the {self._hbm_bytes} bytes of all HBM of the machine"
            fix = "make the program's sizes smaller, or choose a larger machine"
            raise OutOfMemoryError("program", found, expected, fix)


def small_integers(torch: RuntimeContext, shape: tuple[int, ...]) -> Array:
    """Return f32 numbers from -8 to 7, whose sums are exact in any order."""
    Draw(torch).check_room(shape, np.float32)
    return np.random.default_rng(torch.seed).integers(-8, 8, shape).astype(np.float32)
