"""Memory as a kernel sees it: loads, stores, atomics, and tensors that have names and windows."""

from collections.abc import Callable
from typing import Any

from tilewright.language.dtype import DType
from tilewright.language.executor import Executor, current_program
from tilewright.language.front import direct
from tilewright.language.pointer import (
    Ref,
    TensorDescriptor,
    Window,
    is_integer,
    make_ref,
    no_dtype,
    pointers_of,
)
from tilewright.language.value import Pointers

NOT_A_NUMBER = float("nan")
PADDINGS = {"": None, "zero": 0, "nan": NOT_A_NUMBER}


@direct
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
    shape: Any = None,
    dtype: Any = None,
) -> Any:
    """Read the elements at ``pointer``; where ``mask`` is false, ``other`` (else 0) instead.

    With a ``shape``, ``pointer`` is the address of a whole tile, row by row; so is a ref. It may
    be an integer, which counts bytes, if ``dtype`` says of what; without a shape of one element.
    Of a block pointer, what lies outside the tensor on the axes of ``boundary_check`` is padded.
    The cache and eviction hints say nothing here: there are no caches. ``volatile`` says that the
    program polls: repeated for ever in vain, it is stopped.
    """
    program = current_program()
    if volatile:
        program.note_poll(pointer)
    if shape is not None or dtype is not None:
        pointer = make_ref(program, pointer, () if shape is None else shape, dtype, None)
    if isinstance(pointer, Ref):
        pointer = pointer.pointers()
    if isinstance(pointer, Window):
        if mask is not None or other is not None:
            found = "a mask with a block pointer"
            raise program.error(found, "boundary_check alone", "drop mask and other")
        if padding_option not in PADDINGS:
            found = f"padding_option {padding_option!r}"
            raise program.error(found, 'one of "", "zero", "nan"', "correct it")
        other = PADDINGS[padding_option]
        pointer, mask = pointer.pointers(), pointer.mask(_axes(program, pointer, boundary_check))
    elif other is not None and mask is None:
        raise program.error("other without a mask", "a mask with it", "drop it, or pass a mask")
    return program.load(pointer, mask, other)


@direct
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write ``value`` to the elements at ``pointer`` where ``mask`` is true.

    A ref is written as a whole; so is a tile whose address alone is given, row by row. At an
    integer address elements have the dtype of ``value``.
    """
    program = current_program()
    shape = getattr(value, "shape", ())
    if is_integer(pointer):
        dtype = getattr(value, "dtype", None)
        if not isinstance(dtype, DType):
            raise no_dtype(program, pointer)
        pointer = pointers_of(program, pointer, dtype)
    if mask is None and shape and isinstance(pointer, Pointers) and not pointer.shape:
        pointer = make_ref(program, pointer, shape, None, None)
    if isinstance(pointer, Ref):
        pointer = pointer.pointers()
    if isinstance(pointer, Window):
        if mask is not None:
            found = "a mask with a block pointer"
            raise program.error(found, "boundary_check alone", "drop the mask")
        pointer, mask = pointer.pointers(), pointer.mask(_axes(program, pointer, boundary_check))
    program.store(pointer, value, mask)


def _axes(program: Executor, window: Window, boundary_check: Any) -> tuple[int, ...]:
    axes = tuple(boundary_check) if isinstance(boundary_check, list | tuple) else (boundary_check,)
    rank = len(window.shape)
    if not all(isinstance(axis, int) and 0 <= axis < rank for axis in axes):
        found = f"boundary_check {boundary_check!r}"
        raise program.error(found, f"axes from 0 to {rank - 1}", "correct the axes")
    return axes


def ref(ptr: Any, shape: Any, dtype: Any = None, strides: Any = None) -> Ref:
    """A tensor in memory by name: nothing moves until somebody needs a part of it.

    Row by row without gaps, unless ``strides`` (in elements) say otherwise. ``ptr`` may be an
    integer, which counts bytes, if ``dtype`` says of what.
    """
    return make_ref(current_program(), ptr, shape, dtype, strides)


def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> Window:
    """A window of ``block_shape`` on a tensor; the order of axes in memory says nothing here."""
    program = current_program()
    shape, strides, offsets, block_shape = _parts(
        program, base, shape, strides, offsets, block_shape
    )
    return Window(program, base, shape, strides, block_shape, offsets)


def advance(base: Window, offsets: Any) -> Window:
    """A window moved by so many elements on each axis."""
    return base.advance(offsets)


def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: str = "zero"
) -> TensorDescriptor:
    """A tensor in memory, read and written in blocks of ``block_shape``."""
    program = current_program()
    if padding_option != "zero":
        found = f"padding_option {padding_option!r}"
        raise program.error(found, '"zero"', "mask after the load")
    return TensorDescriptor(program, base, *_parts(program, base, shape, strides, block_shape))


def load_tensor_descriptor(desc: TensorDescriptor, offsets: Any) -> Any:
    """As ``desc.load(offsets)``."""
    return desc.load(offsets)


def store_tensor_descriptor(desc: TensorDescriptor, offsets: Any, value: Any) -> None:
    """As ``desc.store(offsets, value)``."""
    desc.store(offsets, value)


def _parts(program: Executor, base: Any, *parts: Any) -> list[tuple[int, ...]]:
    """Sizes of a tensor in memory, one for each axis."""
    if is_integer(base):
        raise no_dtype(program, base)
    if type(base) is not Pointers or base.shape:
        raise program.error(f"{base!r} as the base", "one address", "pass a tensor argument")
    found = [tuple(int(value) for value in part) for part in parts]
    if len({len(part) for part in found}) != 1:
        sizes = ", ".join(map(str, found))
        raise program.error(f"the sizes {sizes}", "one number an axis in each", "correct the sizes")
    return found


def _atomic(name: str, what: str) -> Callable[..., Any]:
    def function(
        pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None
    ) -> Any:
        return current_program().atomic(name, pointer, (val,), mask, sem)

    function.__name__ = function.__qualname__ = f"atomic_{name}"
    function.__doc__ = f"{what}; gives what was there before. Atomics are sequential per element."
    return function


atomic_add = _atomic("add", "Add to the elements in memory")
atomic_and = _atomic("and", "And the elements in memory")
atomic_max = _atomic("max", "Raise the elements in memory to at least the value")
atomic_min = _atomic("min", "Lower the elements in memory to at most the value")
atomic_or = _atomic("or", "Or the elements in memory")
atomic_xchg = _atomic("xchg", "Put values into memory")
atomic_xor = _atomic("xor", "Exclusive-or the elements in memory")


def atomic_load(
    pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None
) -> Any:
    """Load; accesses are served one at a time anyway. All that follows comes after it.

    A program that repeats it for ever, when nobody can write there any more, is stopped.
    """
    return current_program().atomic_load(pointer, mask, sem)


def atomic_store(
    pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None
) -> None:
    """A store, likewise. It comes after all before it."""
    current_program().atomic_store(pointer, val, mask, sem)


def atomic_cas(
    pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None
) -> Any:
    """Put a value where memory holds ``cmp``; gives what was there before."""
    return current_program().atomic("cas", pointer, (cmp, val), None, sem)
