"""Widths of pages and queries that need no padding where no GPU runs the text."""

from collections.abc import Iterable, Sequence

from tilewright.attention.codegen.elementwise import ELEMENTWISE
from tilewright.attention.codegen.narrow_dot import is_dot
from tilewright.attention.codegen.slice_loads import window_of
from tilewright.attention.graph import DType, Node
from tilewright.attention.ops import reduce

__all__ = ("exact_widths",)

_REDUCED = reduce.Sum | reduce.Mean | reduce.Max | reduce.Min | reduce.L2Norm


def exact_widths(wanted: Sequence[Node]) -> frozenset[int]:
    """Sizes that products with queries contract, and that all values on the way have as they are.

    A latent has 576 channels: padded to 1024 it would take twice the room, and a product twice the
    time.
    """
    nodes = _all(wanted)
    widths = {node.inputs[0].type.shape[1] for node in nodes if is_dot(node)}
    return frozenset(
        width
        for width in widths
        if width & (width - 1) and all(_keeps(node) for node in nodes if width in node.type.shape)
    )


def _keeps(node: Node) -> bool:
    """Whether the text of a node takes any extent of its axes."""
    window = window_of(node)
    if window is not None:
        return window.source.type.dtype is not DType.INT4
    return type(node.op) in ELEMENTWISE or isinstance(node.op, _REDUCED) or is_dot(node)


def _all(wanted: Iterable[Node]) -> list[Node]:
    """The nodes, and all that they are made of."""
    found: dict[Node, None] = {}
    waiting = list(wanted)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting.extend(node.inputs)
    return list(found)
