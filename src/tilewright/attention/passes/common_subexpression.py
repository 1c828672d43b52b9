"""Equal values are computed once."""

from tilewright.attention.graph import Graph, Node, Op, Scope, Side, keep, rebuild


def common_subexpression(graph: Graph) -> Graph:
    """Nodes of one side with equal ops and the same inputs become one; the first line stays.

    Ops are pure, so this keeps values bit for bit.
    """
    known: dict[tuple[Side, Op, tuple[Node, ...]], Node] = {}

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        key = (scope.side, node.op, inputs)
        if key not in known:
            known[key] = keep(node, inputs, scope)
        return known[key]

    return rebuild(graph, transform)
