"""What nothing needs is dropped."""

from dataclasses import replace

from tilewright.attention.graph import Graph, Side


def dead_code(graph: Graph) -> Graph:
    """Drop summaries that the indexer never reads, and inputs and parameters that nobody reads.

    Roots are the output and what is saved as state. Nodes that roots do not need are no part of a
    graph in the first place. The query and the model's keys and values stay.
    """
    names = {
        side: {getattr(node.op, "variable", None) for node in graph.nodes(side)} for side in Side
    }
    kept = set(graph.geometry.reserved_fields) | names[Side.INDEXER]
    states = {state.name for state in graph.states}
    live = replace(
        graph,
        fields=tuple(item for item in graph.fields if item.name in kept),
        field_writes=tuple(write for write in graph.field_writes if write.target in kept | states),
        inputs=tuple(item for item in graph.inputs if item[0] == "q" or item[0] in kept),
    )
    used = {getattr(node.op, "variable", None) for side in Side for node in live.nodes(side)}
    return replace(live, parameters=tuple(item for item in live.parameters if item.name in used))
