"""Values by their definition: what they hold, whom their operators ask, when they are computed.

``csrc`` has the same in compiled code (``front_value.hpp``, ``front_node.hpp``); without a compiler
this is all there is.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tilewright.errors import InternalError, KernelError, TilewrightError
from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import BlockType, PointerType, block_type
from tilewright.language.dtype import DType, int1
from tilewright.language.executor import Executor
from tilewright.language.source import SourceLine, line_text

LONG_CHAIN = 8192  # nodes without a value, one made of the other


class Node:
    """A value, or the function and the nodes that give it.

    ``run`` is None once the value is there; then the operands are let go.
    """

    __slots__ = ("depth", "inputs", "line", "run", "value")

    def __init__(
        self, run: Callable[..., Any] | None, inputs: Sequence["Node"], line: SourceLine | None
    ) -> None:
        self.run = run
        self.inputs = inputs
        self.line = line
        self.value: Any = None
        unknown = [operand.depth for operand in inputs if operand.run is not None]
        self.depth: int = 1 + max(unknown) if unknown else 0
        """The longest chain of nodes without a value that it was made of."""
        if self.depth and self.depth % LONG_CHAIN == 0:
            _evaluate_determined(self)

    def settle(self, value: Any) -> None:
        """The value is there: loaded, received or known."""
        self.value = value
        self.run = None
        self.inputs = ()


def not_captured() -> None:
    """What stands for the value of a load whose bytes have not been read yet."""
    raise InternalError("node", "a value asked for before its load", "a captured one", "report it")


def evaluate(node: Node) -> Any:
    """The value, after all that it is made of; a stack of our own, since chains are long."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top.run is None:
            stack.pop()
            continue
        missing = [operand for operand in top.inputs if operand.run is not None]
        if missing:
            stack += missing
            continue
        stack.pop()
        try:
            top.value = top.run(*[operand.value for operand in top.inputs])
        except Exception as error:
            raise explained(error, top) from error
        top.run = None
        top.inputs = ()
    return node.value


def _evaluate_determined(node: Node) -> None:
    """Compute what follows from bytes that have been read, of all that a node is made of.

    So an endless loop over one value does not remember all of its turns.
    """
    stack, seen = [node], set()
    while stack:
        top = stack[-1]
        missing = [operand for operand in top.inputs if operand.run is not None]
        if id(top) not in seen:
            seen.add(id(top))
            new = [operand for operand in missing if id(operand) not in seen]
            if new:
                stack += new
                continue
        stack.pop()
        if not missing and top is not node and top.run not in (None, not_captured):
            with suppress(Exception):  # it is told when somebody asks for the value
                evaluate(top)


def is_determined(node: Node) -> bool:
    """Whether the value follows from bytes that have been read: no time has to pass for it."""
    stack, seen = [node], {id(node)}
    while stack:
        top = stack.pop()
        if top.run is not_captured:
            return False
        for operand in top.inputs:
            if operand.run is not None and id(operand) not in seen:
                seen.add(id(operand))
                stack.append(operand)
    return True


def explained(error: Exception, node: Node) -> Exception:
    """With the line that asked for the value; what explains itself stays as it is."""
    if isinstance(error, TilewrightError):
        return error
    found = f"{type(error).__name__}: {error}"
    fix = "correct the operands of this line"
    return KernelError(line_text(node.line), found, "a value", fix)


def _operator(op: str) -> tuple[Any, Any]:
    """Return the method of a binary operator, and that of its right operand."""

    def method(self: Any, other: Any) -> Any:
        return self.program.binary(op, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return self.program.binary(op, other, self)

    return method, reflected


class _Operators:
    """All arithmetic is the program's, which decides what it costs."""

    __slots__ = ("program",)

    program: Executor

    def __getitem__(self, key: Any) -> Any:
        return self.program.subscript(self, key)

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __floordiv__, __rfloordiv__ = _operator("floordiv")
    __mod__, __rmod__ = _operator("mod")
    __and__, __rand__ = _operator("and")
    __or__, __ror__ = _operator("or")
    __xor__, __rxor__ = _operator("xor")
    __lshift__, __rlshift__ = _operator("shl")
    __rshift__, __rrshift__ = _operator("shr")
    __lt__, __gt__ = _operator("lt")[0], _operator("gt")[0]
    __le__, __ge__ = _operator("le")[0], _operator("ge")[0]
    __eq__, __ne__ = _operator("eq")[0], _operator("ne")[0]
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
