"""What a launch may hand to a kernel, and what a program sees of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.dtype import DType
from tilewright.language.executor import Executor
from tilewright.language.front import FUNCTION_TYPES
from tilewright.language.kernel import Kernel
from tilewright.language.scalar import Int1, Scalar, strong_scalar
from tilewright.language.tensor_pointer import TensorDescriptor


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array in virtual memory, as a kernel gets it: where it starts and what it holds."""

    address: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class DescriptorArgument:
    """A tensor descriptor that the host has made over an array."""

    array: ArrayArgument
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]


OWN = frozenset((ArrayArgument, DescriptorArgument, tuple))  # each program has its own


def checked_arguments(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """By name, before any program runs: numbers with their dtypes, constants as they are."""
    return {
        name: value if name in kernel.constants else _checked(kernel, name, value)
        for name, value in arguments.items()
    }


def _checked(kernel: Kernel, name: str, value: Any) -> Any:
    match value:
        case ArrayArgument() | DescriptorArgument() | DType():
            return value
        case _ if isinstance(value, FUNCTION_TYPES):
            return value
        case bool() if kernel.is_triton:
            return Int1(value)
        case None | bool() | str():
            return value
        case tuple():
            return tuple(_checked(kernel, f"{name}[{i}]", part) for i, part in enumerate(value))
        case np.bool_():
            return _checked(kernel, name, bool(value))
        case int() if value == 1 and name in kernel.specialised:
            return 1
        case int() | float() | np.integer() | np.floating():
            return _scalar(kernel, name, value)
    found = f"{name} = {value!r} of type {type(value).__name__}"
    fix = "place an array first, pass a number, or mark the parameter as tl.constexpr"
    if isinstance(value, np.ndarray):
        found = f"{name}, an array of {value.dtype}{list(value.shape)} that is not on the device"
    raise KernelError(f"kernel {kernel.name!r}", found, "an argument that a kernel can take", fix)


def _scalar(kernel: Kernel, name: str, value: Any) -> Scalar:
    number = value.item() if isinstance(value, np.generic) else value
    try:
        return strong_scalar(number)
    except KernelError as error:
        where = f"kernel {kernel.name!r}"
        raise KernelError(where, f"{name} = {number}", error.expected, error.fix) from None


def seen_by(program: Executor, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as one program has them: arrays are its own pointers."""
    seen = dict(arguments)
    for name, value in arguments.items():
        if type(value) in OWN:
            seen[name] = _seen(program, value)
    return seen


def _seen(program: Executor, value: Any) -> Any:
    if type(value) is ArrayArgument:  # mostly
        return program.pointers(value.address, value.dtype)
    match value:
        case DescriptorArgument(array=array):
            base = program.pointers(array.address, array.dtype)
            sizes = (value.shape, value.strides, value.block_shape)
            return TensorDescriptor(program, base, *sizes)
        case tuple():
            return tuple(_seen(program, part) for part in value)
    return value
