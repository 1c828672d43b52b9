"""What becomes of values, whoever carries out the kernel: the common half of all executors."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.affine import Affine
from tilewright.language.block_type import BlockType, PointerType, block_type
from tilewright.language.dtype import DType, dtype_of, int4, int32, int64
from tilewright.language.executor import Executor
from tilewright.language.front import Node, constant_node, evaluate
from tilewright.language.known import known_binary
from tilewright.language.pointer import address_of, integers_of, pointers_of, pointers_to
from tilewright.language.scalar import INT32_LIMIT, Int32, Int64, constant_dtype
from tilewright.language.source import line_text, source_line
from tilewright.language.value import Block, Index, Mask, Pointers, Value

INDEX_BITS = 32


class ValueExecutor(Executor):
    """Keeps indices, masks and addresses affine while it can; all else is computed."""

    desk: Any = None  # where compiled code issues the commands, if it does
    counts: tuple[int, ...]
    title: object  # what messages call it

    def __init__(self) -> None:
        self._constants: dict[tuple[Any, DType, type], Block] = {}

    def __str__(self) -> str:
        return str(self.title)

    @abstractmethod
    def compute(
        self, op: str, operands: tuple[Block, ...], attributes: tuple[Any, ...] = ()
    ) -> Any:
        """Carry out an op; a tuple of blocks if it gives several."""

    @abstractmethod
    def _made(self, op: str, kind: BlockType, make: Callable[[], Any]) -> Block:
        """A block that an op makes out of nothing."""

    # -- what a value asks for -------------------------------------------------------------------

    def binary(self, op: str, left: Any, right: Any) -> Any:
        if type(left) is Block and type(right) is Block:
            return self.compute(op, (left, right))  # most operators
        if type(left) is not Block and type(right) is not Block:
            known = known_binary(op, left, right)
            if known is not None:
                return known
        elif type(left) is not Block or type(right) is not Block:
            known = self._with_scalar(op, left, right)
            if known is not None:
                return known
        if isinstance(left, Pointers) or isinstance(right, Pointers):
            return self._offset(op, left, right)
        return self.compute(op, (self.block(left, right, op), self.block(right, left, op)))

    def _with_scalar(self, op: str, left: Any, right: Any) -> Any:
        """Indices and addresses with one integer that was loaded or computed: the CPU needs it.

        The program waits for it; the result then stays affine.
        """
        block, other = (left, right) if type(left) is Block else (right, left)
        if not isinstance(other, Index | Pointers) or block.shape or not block.dtype.is_int():
            return None
        if isinstance(other, Index) and not block.dtype.signed:
            return None  # an unsigned integer promotes an index
        number = (Int64 if block.dtype.bits > INDEX_BITS else Int32)(self.number(block))
        return self._known_binary(op, *((number, other) if block is left else (other, number)))

    def _known_binary(self, op: str, left: Any, right: Any) -> Any:
        """What no command has to compute, else None."""
        return known_binary(op, left, right)

    def unary(self, op: str, value: Any) -> Any:
        if isinstance(value, Index) and op == "neg":
            return self.binary("sub", 0, value)
        if isinstance(value, Mask) and op == "not":
            box = value.box.inverted()
            if box is not None:
                return Mask(self, box)
        return self.compute(op, (self.block(value),))

    def subscript(self, value: Any, key: Any) -> Any:
        """New axes and whole slices, as in ``x[:, None]``."""
        parts = key if isinstance(key, tuple) else (key,)
        for part in parts:
            if part is not None and part != slice(None):
                fix = "index memory with pointers, or use tl.gather"
                raise self.error(f"[{key!r}] of a block", "only None and : as subscripts", fix)
        rank = len(parts) - parts.count(None)
        if rank > len(value.shape):
            found = f"{rank} subscripts for the shape {value.shape}"
            raise self.error(found, "at most one an axis", "leave some out")
        for axis, part in enumerate(parts):
            if part is None:
                value = self.expand(value, axis)
        return value

    def expand(self, value: Any, axis: int) -> Any:
        """With a new axis of extent 1."""
        if isinstance(value, Index):
            return Index(self, value.affine.expanded(axis), value.dtype)
        if isinstance(value, Mask):
            return Mask(self, value.box.expanded(axis))
        if isinstance(value, Pointers):
            offsets = value.offsets
            wide = None if offsets is None else self.expand(self._spread(offsets, value), axis)
            return Pointers(self, value.affine.expanded(axis), value.element, wide)
        return self.compute("expand_dims", (self.block(value),), ((axis,),))

    def spread(self, value: Any, shape: tuple[int, ...]) -> Any:
        """What no command has computed, over a shape that it fits."""
        if isinstance(value, Index):
            return Index(self, value.affine.broadcast(shape), value.dtype)
        if isinstance(value, Mask):
            return Mask(self, value.box.broadcast(shape))
        return Pointers(self, value.affine.broadcast(shape), value.element, value.offsets)

    def reshaped(self, value: Index, shape: tuple[int, ...]) -> Index:
        """An index under a shape that differs in axes of extent 1 alone."""
        affine = value.affine
        steps = zip(affine.strides, affine.shape, strict=True)
        strides = [stride for stride, extent in steps if extent > 1]
        spread = tuple(strides.pop(0) if extent > 1 else 0 for extent in shape)
        return Index(self, Affine(affine.base, spread, shape), value.dtype)

    def convert(self, value: Any, dtype: Any, bitcast: bool) -> Any:
        if isinstance(dtype, PointerType):
            change = pointers_to if isinstance(value, Pointers) else pointers_of
            return change(self, value, dtype.element_ty)
        if isinstance(value, Pointers):
            return integers_of(self, value, dtype)
        wanted = self.dtype(dtype)
        if isinstance(value, Index) and not bitcast and _holds_index(wanted, value.affine):
            return Index(self, value.affine, wanted)
        block = self.block(value)
        if block.dtype is wanted:
            return block
        if bitcast:
            return self.compute("bitcast", (block,), (wanted,))
        return self.compute("cast", (block,), (wanted, None))

    def number(self, value: Any) -> Any:
        """The one element of a value, for Python: waits until it is there. Of a pointer, bytes."""
        if isinstance(value, Pointers):
            return address_of(self, value)
        if value.type.num_elements != 1:
            found = f"a block of shape {value.shape} where Python needs one number"
            raise self.error(found, "a block of one element", "reduce it first, or use tl.where")
        return self.elements(value).reshape(())[()].item()

    def printable(self, value: Any) -> Any:
        """The elements of a value; in words what has none: addresses, floats of a run without."""
        if isinstance(value, Pointers) or (isinstance(value, Block) and value.node is None):
            return repr(value)
        return self.elements(value)

    def elements(self, value: Any) -> np.ndarray[Any, Any]:
        """All elements of a value, for Python: waits until they are there."""
        if isinstance(value, Index):
            return value.affine.array(value.dtype.storage)
        if isinstance(value, Mask):
            return value.box.array()
        block: Block = value
        if block.node is None:
            found = f"the value of a {block.type} in a run that has only times"
            fix = "run with data, or let only integers decide"
            raise self.error(found, "control by integers", fix)
        return self._evaluated(block, block.node)

    def _evaluated(self, _block: Block, node: Node) -> np.ndarray[Any, Any]:
        """Return the elements of a block that has a value."""
        return np.asarray(evaluate(node))

    # -- blocks ----------------------------------------------------------------------------------

    def dtype(self, source: Any) -> DType:
        return source if type(source) is DType else dtype_of(source, str(self))

    def block(self, value: Any, beside: Any = None, op: str = "add") -> Block:
        """Anything as an operand of a command; a number takes the dtype of what it meets."""
        if type(value) is Block:
            return value
        if isinstance(value, Index):
            affine, storage = value.affine, value.dtype.storage
            return self._made("arange", value.type, lambda: affine.array(storage))
        if isinstance(value, Mask):
            return self._made("arange", value.type, value.box.array)
        if isinstance(value, bool | int | float):
            return self.constant(value, constant_dtype(op, value, beside))
        found = f"{value!r} of type {type(value).__name__}"
        raise self.error(found, "a block, an index or a number", "pass one of these")

    def constant(self, value: Any, dtype: DType) -> Block:
        """A number as a part of the command that uses it."""
        key = (value or str(value), dtype, type(value))  # 0.0 and -0.0 are equal, and not the same
        block = self._constants.get(key)
        if block is None:
            array = np.asarray(value).astype(dtype.storage)
            block = Block(self, block_type(dtype, ()), constant_node(array), None)
            self._constants[key] = block
        return block

    def element(self, value: Any, dtype: DType) -> np.ndarray[Any, Any]:
        """A number as memory has it, in an array of its own."""
        return self.constant(value, dtype).node.value  # type: ignore[no-any-return, union-attr]

    # -- addresses -------------------------------------------------------------------------------

    def index_range(self, start: int, end: int) -> Index:
        """The integers from start to end."""
        return Index(self, Affine(start, (1,), (end - start,)), int32)

    def pointers(self, address: int, element: DType) -> Pointers:
        return Pointers(self, Affine(2 * address if element is int4 else address, (), ()), element)

    def untagged(self, pointers: Pointers) -> Pointers:
        """The bare addresses, where somebody has tagged them to see what they are used for."""
        return pointers

    def _offset(self, op: str, left: Any, right: Any) -> Pointers:
        """Addresses plus a block of offsets that is computed."""
        if op == "add" and isinstance(right, Pointers):
            left, right = right, left
        if op not in ("add", "sub") or not isinstance(left, Pointers) or type(right) is not Block:
            found = f"{op} of {left!r} and {right!r}"
            raise self.error(found, "addresses plus or minus integers", "correct the addresses")
        offsets = right if op == "add" else self.unary("neg", right)
        if left.offsets is not None:
            offsets = self.binary("add", left.offsets, offsets)
        shape = left.affine.plus(Affine(0, (0,) * len(right.shape), right.shape))
        return Pointers(self, shape, left.element, offsets)

    def _spread(self, offsets: Value, pointers: Pointers) -> Any:
        if offsets.shape == pointers.shape:
            return offsets
        return self.compute("broadcast_to", (self.block(offsets),), (pointers.shape,))

    # -- arguments of the language's functions ---------------------------------------------------

    def place(self, axis: Any) -> tuple[int, int]:
        """The program's place on an axis of its grid, which has up to three, and their number."""
        if axis not in (0, 1, 2):
            expected = '0, 1 or 2, "pe", "cube" or "sip"'
            raise self.error(f"axis {axis!r} of the grid", expected, "correct the axis")
        return (self.ids[axis], self.counts[axis]) if axis < len(self.ids) else (0, 1)

    def extents(self, shape: Any) -> tuple[int, ...]:
        """A shape that is written as a number, a list or a tuple."""
        parts = shape if isinstance(shape, list | tuple) else (shape,)
        for part in parts:
            if not isinstance(part, int) or part <= 0:
                raise self.error(f"the shape {shape!r}", "positive integers", "correct the shape")
        return tuple(map(int, parts))

    # -- words -----------------------------------------------------------------------------------

    def error(self, found: str, expected: str, fix: str) -> KernelError:
        """With the user's line and the program; the time joins them where the program ends."""
        where = f"{line_text(source_line())}, {self}"
        return KernelError(where, found, expected, fix)


def _holds_index(dtype: DType, affine: Affine) -> bool:
    """Return whether values stay an index under a dtype: none of them wraps."""
    if dtype is int32:
        return affine.low >= -INT32_LIMIT and affine.high < INT32_LIMIT
    return dtype is int64
