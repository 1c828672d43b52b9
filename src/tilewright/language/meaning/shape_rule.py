"""Rules of shapes: broadcasting and axes."""

from collections.abc import Iterable

from tilewright.errors import KernelTypeError
from tilewright.language.block_type import BlockType
from tilewright.language.meaning.bound import refuse, signature


def broadcast_shape(op: str, types: tuple[BlockType, ...]) -> tuple[int, ...]:
    """The shape of all operands together: missing axes are put in front, extents of 1 repeat.

    >>> from tilewright.language.block_type import block_type
    >>> from tilewright.language.dtype import float32
    >>> broadcast_shape("add", (block_type(float32, (64, 1)), block_type(float32, (32,))))
    (64, 32)
    """
    shape = types[0].shape
    for other in types[1:]:
        if other.shape != shape:
            shape = _pair_shape(op, types, shape, other.shape)
    return shape


def _pair_shape(
    op: str, types: tuple[BlockType, ...], left: tuple[int, ...], right: tuple[int, ...]
) -> tuple[int, ...]:
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and 1 not in (a, b):
            expected = f"extents that are equal or 1; axis {axis} has {a} and {b}"
            refuse(op, types, expected, "add axes with [:, None], or change a block's shape")
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def wrap_axis(op: str, types: Iterable[BlockType], axis: object, rank: int) -> int:
    """An axis from -rank to rank - 1 as one from 0 up."""
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        found = f"axis {axis!r} in {signature(op, types)}"
        expected = f"an axis from {-rank} to {rank - 1}" if rank else "a block with axes"
        raise KernelTypeError(op, found, expected, "name one of the block's axes")
    return axis % rank


def check_blocks(op: str, types: tuple[BlockType, ...]) -> None:
    """All operands have one shape and are no scalars."""
    if any(each.shape != types[0].shape for each in types):
        refuse(op, types, "operands of one shape", "broadcast them first")
    if not types[0].shape:
        refuse(op, types, "a block with axes", "use the scalar as it is")
