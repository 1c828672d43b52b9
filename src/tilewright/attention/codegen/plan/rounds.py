"""Cutting the indexer side where an op needs all pages of its row."""

from collections.abc import Iterable, Mapping

from tilewright.attention.graph import Graph, Leading, Node, Side, StateWrite


def round_of(graph: Graph) -> dict[Node, int]:
    """Return the round in which each node of the indexer side is computed.

    The result of a row op is there in the round after its own.
    """
    rounds: dict[Node, int] = {}
    for node in graph.nodes(Side.INDEXER):
        known = (rounds[item] + item.op.is_row_op for item in node.inputs)
        rounds[node] = max(known, default=0)
    return rounds


def is_repeated(node: Node) -> bool:
    """Tell whether a later round computes the node again: leaves, and work per row."""
    return not node.inputs or node.type.leading is not Leading.PAGES


def page_roots(rounds: Mapping[Node, int], wanted: Iterable[Node], index: int) -> list[Node]:
    """Return what the page kernel of a round must leave in scratch memory, in a fixed order.

    ``wanted`` are the values that kernels after the last round read.
    """
    found: dict[Node, None] = {}
    for node, at in rounds.items():
        for item in node.inputs:
            if rounds[item] == index and not item.op.is_row_op:
                later = at > index and not is_repeated(item)
                if later or node.op.is_row_op:
                    found[item] = None
    for node in wanted:
        if rounds[node] == index and not node.op.is_row_op:
            found[node] = None
    return list(found)


def writes_by_round(graph: Graph, rounds: Mapping[Node, int]) -> dict[int, list[StateWrite]]:
    """Find the round whose page kernel can write each state: the first that has its value."""
    found: dict[int, list[StateWrite]] = {}
    for write in graph.state_writes:
        found.setdefault(rounds[write.value] + write.value.op.is_row_op, []).append(write)
    return found
