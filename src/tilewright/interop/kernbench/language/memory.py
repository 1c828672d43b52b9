"""What a kernel does with memory: loads, stores, refs, and pipelines over tiles of them.

Addresses are Python's integers and count bytes.
"""

from collections.abc import Mapping
from math import prod
from operator import index
from typing import Any

from tilewright import language as tl
from tilewright.interop.kernbench.language.handle import (
    CompletionHandle,
    RecvFuture,
    TensorHandle,
    handle_of,
    operand_of,
    parse_dtype,
)
from tilewright.interop.kernbench.value import DTYPES
from tilewright.language.affine import broadcast_shapes
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.composite import attributes_of, check_vector_op, product_type
from tilewright.language.dtype import float32
from tilewright.language.executor import current_program
from tilewright.language.meaning import MEANINGS
from tilewright.language.pointer import Ref

INTEGERS = frozenset(text for text, dtype in DTYPES.items() if not dtype.is_floating())


def load(ptr: Any, shape: Any = None, dtype: str = "f16") -> TensorHandle:
    """Load the tensor that begins at a byte address, row by row, into the TCM.

    It is under way when the call returns; whoever uses the values waits for them. ``ptr`` may be
    a ref, whose shape and dtype hold then.
    """
    if isinstance(ptr, TensorHandle) and isinstance(ptr.held, Ref):
        if shape is not None:
            found = f"tl.load of a ref with the shape {shape!r}"
            raise current_program().error(found, "the ref's own shape", "leave the shape out")
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


TILE_SHAPE = (32, 64, 32)  # M, K, N
OPS = {"div": "div_rn"}  # the quotient that keeps the dtype of its operands


def composite(
    op: str,
    a: Any,
    b: Any = None,
    out_ptr: Any = None,
    math_op: str | None = None,
    epilogue: Any = (),
    acc_dtype: str | None = None,
    tile_shape: Any = None,
) -> CompletionHandle:
    """Begin a pipeline over tiles and go on; ``tl.wait`` waits for its end.

    ``op`` is "gemm", a (M, K) by b (K, N), or "math" with ``math_op`` as the name of an op of one
    or two operands. Operands are refs, which are streamed tile by tile, or loaded tensors.
    ``out_ptr`` is a byte address, where the result has the dtype of the operands, or a ref, whose
    dtype holds; without it ``tl.wait`` gives the result. Products are added up in ``acc_dtype``,
    f32 by default. ``tile_shape`` is M, K, N, by default 32, 64, 32. An entry of the epilogue is a
    name, ``(name, operand, scope)`` or ``{"op": name, "operand": ..., "scope": ...}`` with a scope
    of "k_tile", "output_tile" (default) or "kernel".
    """
    name = _op_name(op, math_op)
    first = _moved(a)
    second = None if b is None else _moved(b)
    operands = (first,) if second is None else (first, second)
    result = _gemm_type(operands) if name == "gemm" else _vector_type(name, operands)
    out = None if out_ptr is None else _out(out_ptr, result)
    acc = float32 if acc_dtype is None else parse_dtype(acc_dtype)
    stages = [_stage(entry) for entry in _entries(epilogue)]
    pending = tl.composite(name, first, second, out, stages, acc, _mnk(tile_shape))
    return CompletionHandle._made(pending=pending, dtype=result.dtype)


def wait(handle: Any) -> TensorHandle | None:
    """Suspend the program until a composite has ended or a message is there; give its tensor."""
    if not isinstance(handle, CompletionHandle | RecvFuture):
        fix = "pass what tl.composite or tl.recv_async gave; a load needs no wait"
        raise current_program().error(f"{handle!r} to wait for", "something that was begun", fix)
    return handle.wait()


def _op_name(op: str, math_op: str | None) -> str:
    if op == "math" and math_op is not None:
        return OPS.get(math_op, math_op)
    if op == "math":
        fix = 'write math_op="exp" or another op beside it'
        raise current_program().error('op="math" without math_op', "the name of an op", fix)
    if math_op is not None:
        found, fix = f"math_op={math_op!r} beside op={op!r}", "write it as an entry of epilogue"
        raise current_program().error(found, 'math_op with op="math" alone', fix)
    return OPS.get(op, op)


def _moved(value: Any) -> Any:
    """Return an operand: a ref, a block, or a number as a block."""
    if isinstance(value, TensorHandle) and isinstance(value.held, Ref):
        return value.held
    return current_program().block(operand_of(value))


def _gemm_type(operands: tuple[Any, ...]) -> BlockType:
    if len(operands) != 2:
        fix = "pass a (M, K) and b (K, N)"
        raise current_program().error('op="gemm" with one operand', "two operands", fix)
    left, right = (operand.type for operand in operands)
    if not left.shape or not right.shape:
        fix = "name the tensor at an address by tl.ref(ptr, shape, dtype)"
        raise current_program().error('a number as an operand of "gemm"', "matrices", fix)
    product = product_type(left, right, float32)
    return product.with_dtype(left.dtype) if left.dtype.is_floating() else product


def _vector_type(name: str, operands: tuple[Any, ...]) -> BlockType:
    check_vector_op(current_program(), name, "the op of a composite", ("gemm",))
    types = tuple(operand.type for operand in operands)
    shape: tuple[int, ...] = (1, 1)
    for kind in types:
        shape = broadcast_shapes(shape, kind.shape)
    found: Any = MEANINGS[name].bind(types, attributes_of(name)).type  # of one result
    return block_type(found.dtype, shape)


def _out(out_ptr: Any, result: BlockType) -> Ref:
    if isinstance(out_ptr, TensorHandle) and isinstance(out_ptr.held, Ref):
        return out_ptr.held
    return tl.ref(address_of(out_ptr), result.shape, result.dtype)


def _mnk(tile_shape: Any) -> tuple[Any, ...]:
    if tile_shape is None:
        tile_shape = TILE_SHAPE
    if not isinstance(tile_shape, list | tuple) or len(tile_shape) != 3:
        found = f"tile_shape {tile_shape!r}"
        raise current_program().error(found, "three sizes: M, K, N", "correct it")
    m, k, n = current_program().extents(tile_shape)
    return m, n, k


# -- epilogues -------------------------------------------------------------------------------------


def _entries(epilogue: Any) -> list[Any]:
    if epilogue is None:
        return []
    if isinstance(epilogue, str | Mapping):
        return [epilogue]
    if isinstance(epilogue, list | tuple):
        return list(epilogue)
    found, fix = f"the epilogue {epilogue!r}", 'write [("bias", handle), "relu"]'
    raise current_program().error(found, "a list of entries", fix)


def _stage(entry: Any) -> tuple[Any, ...]:
    """Return an entry of an epilogue as (name, operand, scope), its operand as a value of ours."""
    if isinstance(entry, str):
        return (entry,)
    if not isinstance(entry, list | tuple | Mapping) or not entry:
        fix = 'write "relu", ("bias", handle) or {"op": "bias", "operand": handle}'
        raise current_program().error(f"the entry {entry!r} of an epilogue", "an op", fix)
    parts = _mapped(entry) if isinstance(entry, Mapping) else tuple(entry)
    name, operand, *scope = (*parts, None)[: max(2, len(parts))]
    return (name, _parameter(operand), *scope)


def _mapped(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a mapping: beside "op" and "scope" there is one key, the operand's."""
    operands = [value for key, value in entry.items() if key not in ("op", "scope")]
    if "op" not in entry or len(operands) > 1:
        fix = 'write {"op": "bias", "operand": handle, "scope": "output_tile"}'
        raise current_program().error(f"the epilogue {entry!r}", "an op and one operand", fix)
    return (entry["op"], *(operands or [None]), entry.get("scope"))


def _parameter(operand: Any) -> Any:
    """Return what a stage computes with: numbers stay numbers."""
    return operand.held if isinstance(operand, TensorHandle) else operand
