"""Immutable nodes: an op, its inputs, the type of the result, and where the author wrote it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilewright.attention.graph.op import Op
from tilewright.attention.graph.type import ValueType


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One value. Two nodes are equal only if they are the same object."""

    op: Op
    inputs: tuple["Node", ...]
    type: ValueType  # what op.infer said
    source: str = ""  # the author's file and line, "quest.py:31"

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.type} {self.source}>"


def walk(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node that the roots need, inputs before users, each once, in a fixed order."""
    done: set[Node] = set()
    for root in roots:
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, inputs_are_done = stack.pop()
            if node in done:
                continue
            if inputs_are_done:
                done.add(node)
                yield node
            else:
                stack.append((node, True))
                stack.extend((item, False) for item in reversed(node.inputs))
