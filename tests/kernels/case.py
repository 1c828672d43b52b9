"""A kernel with its inputs, and what must come out; the same for every way to run it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tests.kernels.interpreter import run_in_triton
from tilewright.language.dtype import dtype_of

__all__ = (
    "Array",
    "KernelCase",
    "check_close",
    "check_expected",
    "check_same",
    "rng_of",
    "tolerance_of",
)

Array: TypeAlias = np.ndarray[Any, Any]
Arguments: TypeAlias = dict[str, Any]

SOURCE = Path(__file__).parent / "source"

# relative to the norm of a row, as DESIGN has it; fp8 has two or three bits after the point
TOLERANCES = {
    "fp64": 1e-12,
    "fp32": 1e-5,
    "fp16": 2e-3,
    "bf16": 2e-2,
    "fp8e4nv": 7e-2,
    "fp8e5": 2e-1,
}


@dataclass(frozen=True, slots=True)
class KernelCase:
    """``arguments()`` makes fresh inputs, the same ones each time; outputs are among them."""

    name: str
    source: str  # the file that a user would have written
    kernel: str
    grid: tuple[int, ...] | str  # or the name of a function in the file
    arguments: Callable[[], Arguments]
    expected: Callable[[Arguments], dict[str, Array]]  # in f64, from the inputs
    exact: tuple[str, ...] = ()  # outputs that must equal the interpreter's bit for bit
    runs_in_triton: bool = True  # not where the installed Triton has lost or mistaken a thing

    @property
    def file(self) -> Path:
        return SOURCE / f"{self.source}.py"

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.expected(self.arguments()))

    def in_triton(self) -> dict[str, Array]:
        """All arrays as the interpreter leaves them."""
        return run_in_triton(self.file, self.kernel, self.grid, self.arguments())


def rng_of(name: str) -> np.random.Generator:
    """A generator of its own for each case."""
    return np.random.default_rng(list(name.encode()))


def tolerance_of(arguments: Arguments) -> float:
    """That of the narrowest float among the arrays: results are no better than what went in."""
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    return max(TOLERANCES.get(dtype_of(array.dtype).name, 0.0) for array in arrays)


def check_close(name: str, found: Array, expected: Array, tolerance: float) -> None:
    """Integers are equal; floats differ by the tolerance, relative to the row."""
    dtype = dtype_of(found.dtype)
    assert found.shape == expected.shape, name
    if not dtype.is_floating():
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    wide = found.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(wide), np.isfinite(expected), err_msg=name)
    finite = np.where(np.isfinite(expected), expected, 0.0)
    norm = np.linalg.norm(np.atleast_1d(finite), axis=-1, keepdims=True)
    error = np.abs(np.atleast_1d(np.where(np.isfinite(wide), wide, 0.0) - finite))
    worst = float(np.max(error / np.maximum(norm, 1e-30)))
    assert worst <= tolerance, f"{name}: {worst} of the row's norm"


def check_expected(case: KernelCase, found: dict[str, Array]) -> None:
    """Against NumPy in f64."""
    arguments = case.arguments()
    tolerance = tolerance_of(arguments)
    for name, expected in case.expected(arguments).items():
        check_close(f"{case.name}.{name}", found[name], expected, tolerance)


def check_same(case: KernelCase, found: dict[str, Array], theirs: dict[str, Array]) -> None:
    """Against Triton: every output close, the exact ones bit for bit."""
    tolerance = tolerance_of(case.arguments())
    for name in case.outputs:
        assert found[name].dtype == theirs[name].dtype
        check_close(f"{case.name}.{name}", found[name], theirs[name].astype(np.float64), tolerance)
    for name in case.exact:
        same = found[name].tobytes() == theirs[name].tobytes()
        assert same, f"{case.name}.{name} differs from Triton's bits"
