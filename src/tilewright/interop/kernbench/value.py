"""What programs name and hold beside tensors: element types, devices, requests, numbers, errors.

KernBench has them in ``common.types`` and ``runtime_api.types``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from tilewright.errors import ProgramError, RequestError, TensorError, UnitError
from tilewright.language import dtype as ours
from tilewright.language.dtype import DType


class ValueProgramError(ProgramError, ValueError):
    """A wrong value where KernBench raises ValueError."""


class RuntimeProgramError(ProgramError, RuntimeError):
    """A call that cannot be carried out, where KernBench raises RuntimeError."""


def whole_number(value: object) -> int | None:
    """Return a whole number as Python's int; None for what is none, truth values included.

    >>> import numpy as np
    >>> whole_number(np.int64(8)), whole_number(8.0), whole_number(True)
    (8, None, None)
    """
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    return int(value) if is_number else None  # type: ignore[call-overload]


DTYPES: Mapping[str, DType] = MappingProxyType(
    {
        dtype.device_name: dtype
        for dtype in (
            ours.float16, ours.bfloat16, ours.float32, ours.float64,
            ours.int8, ours.int16, ours.int32, ours.int64,
            ours.uint8, ours.uint16, ours.uint32, ours.uint64,
        )
    }
)  # fmt: skip
_HOST = ("f16", "f32", "i8", "i16", "i32", "u8", "u16", "u32")  # that from_numpy takes
_UNSIGNED = {1: ours.uint8, 2: ours.uint16, 4: ours.uint32, 8: ours.uint64}


def dtype_of_text(text: object, where: str = "dtype") -> DType:
    """Return the dtype that a text names; our own names and dtypes are refused.

    >>> dtype_of_text("bf16")
    tl.bfloat16
    """
    found = DTYPES.get(text) if isinstance(text, str) else None
    if found is None:
        fix = "write it as a text, like 'f16'"
        raise TensorError(where, f"the dtype {text!r}", f"one of {', '.join(DTYPES)}", fix)
    return found


def dtype_itemsize(dtype: str) -> int:
    """Return the bytes of an element.

    >>> dtype_itemsize("f16")
    2
    """
    return dtype_of_text(dtype).bits // 8


def dtype_of_size(itemsize: int) -> DType:
    """Return an unsigned dtype whose elements have so many bytes."""
    if itemsize not in _UNSIGNED:
        fix = "pass dtype_itemsize(dtype)"
        raise UnitError("itemsize", repr(itemsize), "1, 2, 4 or 8 bytes", fix)
    return _UNSIGNED[itemsize]


def dtype_of_array(array: np.ndarray[Any, Any]) -> str:
    """Return the text of an array's dtype, of those that ``from_numpy`` takes."""
    for text in _HOST:
        if array.dtype == DTYPES[text].storage:
            return text
    fix = "convert it: array.astype(numpy.float16)"
    found = f"an array of {array.dtype}"
    raise ValueProgramError("from_numpy", found, f"one of {', '.join(_HOST)}", fix)


@dataclass(frozen=True, slots=True)
class DeviceSelector:
    """The SIPs that a context may use: all, or one."""

    is_all: bool
    sip_index: int | None = None

    def __str__(self) -> str:
        return "all" if self.is_all else f"sip:{self.sip_index}"


def resolve_device(text: str) -> DeviceSelector:
    """Read "all" or "sip:N".

    >>> resolve_device("sip:1").sip_index
    1
    """
    if text == "all":
        return DeviceSelector(is_all=True)
    kind, _, number = str(text).partition(":")
    if kind == "sip" and number.isascii() and number.isdigit():
        return DeviceSelector(is_all=False, sip_index=int(number))
    raise ValueProgramError("device", repr(text), "'all' or 'sip:N'", "correct the device")


def sips_of(device: DeviceSelector | str, num_sips: int) -> tuple[int, ...]:
    """Return the SIPs of a device on a machine that has so many."""
    chosen = device if isinstance(device, DeviceSelector) else resolve_device(str(device))
    if chosen.is_all:
        return tuple(range(num_sips))
    if chosen.sip_index is None or not 0 <= chosen.sip_index < num_sips:
        expected = f"a SIP from 0 to {num_sips - 1}"
        raise ValueProgramError("target_device", str(chosen), expected, "correct the device")
    return (chosen.sip_index,)


class RequestHandle(str):
    """The name of a submitted message, unique on its engine: a text that is not empty.

    >>> RequestHandle("softmax_sip0#3")
    'softmax_sip0#3'
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not isinstance(text, str) or not text:
            fix = "use the handle that submit returned"
            raise RequestError("RequestHandle", repr(text), "a text that is not empty", fix)
        return super().__new__(cls, text)


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a request: a failure has a code and a message, a success has neither.

    >>> Completion(ok=True)
    Completion(ok=True, error_code=None, error_message=None)
    """

    ok: bool
    error_code: str | None = None
    error_message: str | None = None

    def __post_init__(self) -> None:
        if type(self.ok) is not bool:
            raise RequestError("Completion", f"ok={self.ok!r}", "True or False", "say which")
        for name in ("error_code", "error_message"):
            value = getattr(self, name)
            if self.ok and value is not None:
                found = f"ok=True with {name}={value!r}"
                fix = "leave it out, or write ok=False"
                raise RequestError("Completion", found, f"{name}=None", fix)
            if not self.ok and (not isinstance(value, str) or not value):
                found = f"ok=False with {name}={value!r}"
                fix = "say what failed, by a code and a message"
                raise RequestError("Completion", found, "a text that is not empty", fix)


@runtime_checkable
class SimEngine(Protocol):
    """An engine that a RuntimeContext can drive."""

    def submit(self, request: Any) -> RequestHandle:
        """Put a message on its way; no simulated time passes."""

    def wait(self, handle: RequestHandle) -> None:
        """Let simulated time pass until the message is complete."""

    def get_completion(self, handle: RequestHandle) -> tuple[Completion, dict[str, Any]]:
        """Return how a complete message ended, and its trace."""
