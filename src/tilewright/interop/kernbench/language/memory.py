"""Loads, stores and refs at addresses that are Python's integers and count bytes."""

from math import prod
from operator import index
from typing import Any

from tilewright import language as tl
from tilewright.interop.kernbench.language.handle import (
    TensorHandle,
    handle_of,
    operand_of,
    parse_dtype,
)
from tilewright.interop.kernbench.value import DTYPES
from tilewright.language.executor import current_program
from tilewright.language.pointer import Ref

INTEGERS = frozenset(text for text, dtype in DTYPES.items() if not dtype.is_floating())


def load(ptr: Any, shape: Any = None, dtype: str = "f16") -> TensorHandle:
    """Load the tensor that begins at a byte address, row by row, into the TCM.

    It is under way when the call returns; whoever uses the values waits for them. ``ptr`` may be
    a ref, whose shape and dtype hold then.
    """
    if isinstance(ptr, TensorHandle) and isinstance(ptr.held, Ref):
        _check_alone("tl.load of a ref", shape)
        return handle_of(tl.load(ptr.held), ptr.addr)
    _check_shape("tl.load", shape)
    address = address_of(ptr)
    block = tl.load(address, shape=shape, dtype=parse_dtype(dtype))
    return handle_of(block, address)


def ref(ptr: Any, shape: Any = None, dtype: str = "f16") -> TensorHandle:
    """Name the tensor at a byte address; nothing moves until ``tl.composite`` needs a tile."""
    _check_shape("tl.ref", shape)
    address = address_of(ptr)
    return handle_of(tl.ref(address, shape, parse_dtype(dtype)), address)


def store(ptr: Any, handle: Any) -> None:
    """Write a tensor to a byte address, row by row, in its own dtype."""
    if isinstance(ptr, TensorHandle) and isinstance(ptr.held, Ref):
        tl.store(ptr.held, _stored(handle))
        return
    tl.store(address_of(ptr), _stored(handle))


def _stored(handle: Any) -> Any:
    if not isinstance(handle, TensorHandle):
        found = f"{handle!r} of type {type(handle).__name__} to store"
        fix = "make a tensor of a number by tl.full(shape, value, dtype)"
        raise current_program().error(found, "a TensorHandle", fix)
    return operand_of(handle)


def address_of(ptr: Any) -> int:
    """Return an address as an integer; one that was loaded or computed is waited for."""
    is_tensor = isinstance(ptr, TensorHandle)
    if is_tensor and (prod(ptr.shape) != 1 or ptr.dtype not in INTEGERS):
        found = f"{ptr!r} as an address"
        fix = "pass an address first, as in tl.store(ptr, handle)"
        raise current_program().error(found, "an integer that counts bytes", fix)
    if isinstance(ptr, bool | float) or not hasattr(ptr, "__index__"):
        found = f"{ptr!r} of type {type(ptr).__name__} as an address"
        fix = "pass a tensor argument, or one plus a whole number of bytes"
        raise current_program().error(found, "an integer that counts bytes", fix)
    return index(ptr)


def _check_shape(what: str, shape: Any) -> None:
    if shape is None:
        found = f"{what} without a shape"
        raise current_program().error(found, "a shape", f"write {what}(ptr, shape, dtype)")


def _check_alone(what: str, shape: Any) -> None:
    if shape is not None:
        found = f"{what} with the shape {shape!r}"
        raise current_program().error(found, "the ref's own shape", "leave the shape out")
