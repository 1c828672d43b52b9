"""A program among others: which it is, and its messages to neighbours, by direction."""

from math import prod
from typing import Any

from tilewright import language as tl
from tilewright.executor.program import running_program
from tilewright.interop.kernbench.language.handle import (
    RecvFuture,
    TensorHandle,
    handle_of,
    operand_of,
    parse_dtype,
)
from tilewright.interop.kernbench.language.memory import address_of, store
from tilewright.language.executor import current_program
from tilewright.language.pointer import Ref


def send(dir: str, src: Any) -> None:
    """Send a tensor to the neighbour in a direction; goes on at once unless the ring is full.

    A message is elements of a dtype: its receiver may give them another shape.
    """
    if not isinstance(src, TensorHandle):
        found = f"{src!r} of type {type(src).__name__} to send"
        raise current_program().error(found, "a TensorHandle", "pass src=handle")
    tl.send(dir, operand_of(src).reshape(prod(src.shape)))


def recv(
    dir: str | None = None, shape: Any = None, dtype: str = "f16", dst: Any = None
) -> TensorHandle:
    """Wait for the next message from a direction; None takes the directions in turn.

    With ``dst`` it is copied: to a byte address, to where a ref is, or into a tensor that the
    kernel has, whose values it replaces. A handle gives the shape and the dtype, if no shape is
    named.
    """
    if isinstance(dst, TensorHandle) and shape is None:
        shape, dtype = dst.shape, dst.dtype
    handle = recv_async(dir, shape, dtype).wait()
    return handle if dst is None else _copied(handle, dst)


def _copied(handle: TensorHandle, dst: Any) -> TensorHandle:
    """Return the handle of the copy."""
    if not isinstance(dst, TensorHandle):
        address = address_of(dst)
        store(address, handle)
        return handle_of(handle.held, address)
    if (handle.shape, handle.dtype) != (dst.shape, dst.dtype):
        found = f"a message {handle!r} for dst={dst!r}"
        fix = "leave shape and dtype out, or name another destination"
        raise current_program().error(found, "one shape and dtype", fix)
    if isinstance(dst.held, Ref):
        store(dst, handle)
        return handle_of(handle.held, dst.addr)
    dst.held = handle.held
    return dst


def recv_async(dir: str | None = None, shape: Any = None, dtype: str = "f16") -> RecvFuture:
    """Begin to receive the next message from a direction; ``tl.wait`` gives its tensor."""
    extents = _extents("tl.recv", shape)
    pending = tl.recv_async(dir, prod(extents), parse_dtype(dtype))
    return RecvFuture._made(pending=pending, shape=extents)


def recv_no_consume(dir: str, shape: Any = None, dtype: str = "f16") -> TensorHandle:
    """Wait until the next message is there and look at it: it stays, and nothing is charged."""
    extents = _extents("tl.recv_no_consume", shape)
    block = tl.recv_no_consume(dir, prod(extents), parse_dtype(dtype))
    return handle_of(block.reshape(extents))


def _extents(what: str, shape: Any) -> tuple[int, ...]:
    program = current_program()
    if shape is None:
        fix = "write the shape of what the neighbour sends"
        raise program.error(f"{what} without a shape", "a shape", fix)
    return program.extents(shape)


def program_id(axis: int = 0) -> int:
    """Return the PE's number in its cube (axis 0), or the cube's in its SIP (axis 1)."""
    coord = running_program().stream.pe.coord
    return coord.pe if _is_pe_axis(axis) else coord.cube


def num_programs(axis: int = 0) -> int:
    """Return how many PEs of this cube the launch targets (0), or a SIP's cubes (1).

    The cubes are the machine's, even if the launch targets fewer of them.
    """
    program = running_program()
    if not _is_pe_axis(axis):
        return program.run.device.machine.grid.num_cubes_per_sip
    here = program.stream.pe.coord.cube_coord
    return len({stream.pe.coord for stream in program.run.streams
                if stream.pe.coord.cube_coord == here})  # fmt: skip


def _is_pe_axis(axis: Any) -> bool:
    if type(axis) is not int or axis not in (0, 1):
        fix = "name 0 or 1; pass the SIP, which is the rank, as an argument"
        expected = "0, the PE in its cube, or 1, the cube in its SIP"
        raise current_program().error(f"the axis {axis!r}", expected, fix)
    return axis == 0
