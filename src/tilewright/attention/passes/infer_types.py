"""Formats, shapes and element types follow from the leaves."""

from tilewright.attention.graph import Graph, Node, Scope, make_node, rebuild


def infer_types(graph: Graph) -> Graph:
    """Every node gets the type that its op infers from its inputs and the graph's variables.

    So a graph whose geometry or fields were replaced gets types that fit, or an error.
    """

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        made = make_node(node.op, inputs, scope, node.source)
        same = made.type == node.type and inputs == node.inputs
        return node if same else made

    return rebuild(graph, transform)
