"""What values hold and whom their operators ask: all there is without a compiler.

``csrc/front_value.hpp`` has the same in compiled code.
"""

from typing import Any

from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import BlockType, PointerType, block_type
from tilewright.language.dtype import DType, int1
from tilewright.language.executor import Executor
from tilewright.language.node_plain import Node


class _Operators:
    """All arithmetic is the program's, which decides what it costs."""

    __slots__ = ("program",)

    program: Executor

    def __getitem__(self, key: Any) -> Any:
        return self.program.subscript(self, key)

    def __add__(self, other: Any) -> Any:
        return self.program.binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.program.binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.program.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.program.binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.program.binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.program.binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.program.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.program.binary("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.program.binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.program.binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self.program.binary("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.program.binary("mod", other, self)

    def __and__(self, other: Any) -> Any:
        return self.program.binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self.program.binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return self.program.binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self.program.binary("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self.program.binary("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self.program.binary("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self.program.binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self.program.binary("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self.program.binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self.program.binary("shr", other, self)

    def __lt__(self, other: Any) -> Any:
        return self.program.binary("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self.program.binary("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self.program.binary("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self.program.binary("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return self.program.binary("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self.program.binary("ne", self, other)

    __hash__ = None  # type: ignore[assignment]  # equality gives a block

    def __neg__(self) -> Any:
        return self.program.unary("neg", self)

    def __invert__(self) -> Any:
        return self.program.unary("not", self)


class BlockFields(_Operators):
    """Of a block."""

    __slots__ = ("held", "is_there", "node", "parent", "transposing", "type")

    def __init__(
        self,
        program: Executor,
        kind: BlockType,
        node: Node | None,
        number: int | None,
        parent: Any = None,
        transposing: Any = None,
    ) -> None:
        self.program = program
        self.type = kind
        self.node = node  # None where only time is asked for
        self.held = number  # of what holds its bytes
        self.parent = parent
        self.transposing = transposing  # the plan of the command that is to move its bytes, if any
        self.is_there = False  # the program has waited for it, and its node has the value

    @property
    def number(self) -> int | None:
        """Of its bytes in their order: whoever asks needs them so."""
        if self.transposing is not None:
            self.program.placed(self)
        return self.held

    def __del__(self) -> None:
        if self.parent is None and self.held is not None:
            self.program.release(self.held)


class IndexFields(_Operators):
    """Of an index."""

    __slots__ = ("affine", "type")

    def __init__(self, program: Executor, affine: Affine, dtype: DType) -> None:
        self.program = program
        self.affine = affine
        self.type = block_type(dtype, affine.shape)


class MaskFields(_Operators):
    """Of a mask."""

    __slots__ = ("box", "type")

    def __init__(self, program: Executor, box: Box) -> None:
        self.program = program
        self.box = box
        self.type = block_type(int1, box.shape)


class PointersFields(_Operators):
    """Of addresses."""

    __slots__ = ("affine", "element", "offsets", "type")

    def __init__(
        self, program: Executor, affine: Affine, element: DType, offsets: Any = None
    ) -> None:
        self.program = program
        self.affine = affine  # in bytes; of int4 in halves of a byte
        self.element = element
        self.type = PointerType(element)
        self.offsets = offsets  # a block of whole elements, broadcast to the shape
