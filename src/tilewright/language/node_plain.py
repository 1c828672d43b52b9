"""Values that are computed when somebody needs them, from operands that never change.

``csrc/front_node.hpp`` has the same in compiled code.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tilewright.errors import InternalError, KernelError, TilewrightError
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
