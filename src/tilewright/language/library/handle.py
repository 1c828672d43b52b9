"""What goes on beside a program until it waits: composites over whole tiles, messages."""

from typing import Any

from tilewright.language.affine import broadcast_shapes
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.composite import (
    CompositePlan,
    attributes_of,
    check_vector_op,
    parse_epilogue,
    plan_tiles,
    product_type,
)
from tilewright.language.dtype import float32
from tilewright.language.executor import Executor, Handle, current_program
from tilewright.language.library.memory import store
from tilewright.language.meaning import MEANINGS
from tilewright.language.pointer import Ref, as_operand, make_ref
from tilewright.language.value import Block


def composite(
    op: str,
    a: Any,
    b: Any = None,
    out_ptr: Any = None,
    epilogue: Any = (),
    acc_dtype: Any = float32,
    tile_shape: Any = (32, 32, 64),
) -> Handle:
    """Begin a pipeline over tiles and go on; ``tl.wait`` waits for its end.

    ``op`` is "gemm", a (M, K) by b (K, N) added up in ``acc_dtype``, or an op of the vector unit
    with one or two operands. An operand is a ref, whose tiles are loaded when they are needed, or a
    block. ``tile_shape`` is M, N, K. Results go to ``out_ptr`` (an address, then row by row, or a
    ref); without it they are a block in registers, which ``wait`` gives. An entry of the epilogue
    is ``(name, operand, scope)`` with a scope of "k_tile", "output_tile" or "kernel".
    """
    program = current_program()
    operands = tuple(
        value if op == "gemm" and isinstance(value, Block) else as_operand(program, value)
        for value in (a, b)  # a product reads a transposed block as it lies
        if value is not None
    )
    accumulator = None
    if op == "gemm":
        accumulator = program.dtype(acc_dtype)
        shapes = [operand.shape for operand in operands]
        if [len(shape) for shape in shapes] != [2, 2] or shapes[0][1] != shapes[1][0]:
            found = f"operands of shapes {', '.join(map(str, shapes))}"
            raise program.error(found, "(M, K) and (K, N)", "name other shapes, or transpose one")
        extents = (shapes[0][0], shapes[1][1], shapes[0][1])
        result = product_type(operands[0].type, operands[1].type, accumulator)
    else:
        check_vector_op(program, op, "the op of a composite", ("gemm",))
        extents, result = _elementwise(program, op, operands)
    sizes = program.extents(tile_shape)
    if len(sizes) != 3:
        raise program.error(f"tile_shape {tile_shape!r}", "three sizes: M, N, K", "correct it")
    tiling = plan_tiles(extents, sizes)
    num_k_tiles = len(tiling.depths) if op == "gemm" else None
    stages = parse_epilogue(program, epilogue, result, num_k_tiles)
    out = out_ptr
    if out is not None and not isinstance(out, Ref):
        out = make_ref(program, out_ptr, result.shape, None, None)
    if out is not None and out.shape != result.shape:
        found = f"an output of shape {out.shape}"
        raise program.error(found, f"the result's {result.shape}", "name another shape")
    plan = CompositePlan(op, operands, accumulator, result, tiling, stages, out)
    return program.composite(plan)


def wait(handle: Any) -> Any:
    """Suspend the program until what was begun has ended; gives its block, if it has one."""
    if not hasattr(handle, "wait"):
        program = current_program()
        fix = "pass what tl.composite or tl.recv_async gave"
        raise program.error(f"{handle!r}", "a handle of something that was begun", fix)
    return handle.wait()


def send(dir: str, src: Any) -> None:
    """Send a block to the neighbour in a direction; goes on at once unless the ring there is full.

    A block that is larger than a slot goes in fragments.
    """
    program = current_program()
    program.send(dir, program.block(src))


def recv(dir: str | None, shape: Any, dtype: Any, dst: Any = None) -> Any:
    """Wait for the next message from a direction and return it, as it was when it was sent.

    None takes the directions in turn, in the order in which the launch names them. With ``dst``, an
    address or a ref, the message is also stored there: a slot read and a store.
    """
    block = recv_async(dir, shape, dtype).wait()
    if dst is not None:
        store(dst, block)
    return block


def recv_async(dir: str | None, shape: Any, dtype: Any) -> Handle:
    """Begin to receive the next message from a direction; ``tl.wait`` gives the block."""
    program = current_program()
    kind = block_type(program.dtype(dtype), program.extents(shape))
    return program.receive(dir, kind)


def recv_no_consume(dir: str, shape: Any, dtype: Any) -> Any:
    """Wait for the next message from a direction and return its block; the message stays there.

    The slot is neither read nor given back: it takes no time but that of the arrival, the sender
    gets no credit, and the next ``recv`` gets the same message.
    """
    program = current_program()
    kind = block_type(program.dtype(dtype), program.extents(shape))
    return program.peek(dir, kind)


def _elementwise(
    program: Executor, op: str, operands: tuple[Ref | Block, ...]
) -> tuple[tuple[int, int, int], BlockType]:
    """Return the extents of an op on each element, and the type of its result."""
    shape: tuple[int, ...] = (1, 1)
    for operand in operands:
        shape = broadcast_shapes(shape, operand.shape)
    types = tuple(operand.type for operand in operands)
    bound = MEANINGS[op].bind(types, attributes_of(op)).type
    if len(shape) != 2 or not isinstance(bound, BlockType) or bound.shape != shape:
        found = f"{op} of {', '.join(map(str, types))}"
        raise program.error(found, "an op on each element of rows and columns", "reshape operands")
    return (*shape, 1), block_type(bound.dtype, shape)
