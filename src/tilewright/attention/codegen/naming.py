"""Names of values: those of the flow's variables, else the op's."""

import re
from collections.abc import Iterable

from tilewright.attention.codegen.body import Body
from tilewright.attention.graph import Node

__all__ = ("name_values", "remark_of")


def name_values(nodes: Iterable[Node], body: Body) -> dict[Node, str]:
    """A name for each node, free of those that the body has already."""
    return {node: body.new_name(_wanted(node)) for node in nodes}


def _wanted(node: Node) -> str:
    variable = getattr(node.op, "variable", None)
    if variable is not None:
        return str(variable)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.op.name).lower()
    return {"ge_mm": "product", "max": "largest", "min": "smallest", "sum": "total"}.get(
        words, words
    )


def remark_of(node: Node) -> str:
    """Shape, element type and the author's line."""
    sizes = ", ".join([str(node.type.leading), *map(str, node.type.shape)])
    source = f", {node.source}" if node.source else ""
    return f"[{sizes}] {node.type.dtype.computed}{source}"
