"""New graphs from old ones: the one way in which a graph is changed."""

from collections.abc import Callable
from dataclasses import replace

from tilewright.attention.graph.graph import Branch, Estimate, Graph, Node, Output
from tilewright.attention.graph.op import Op, Scope
from tilewright.attention.graph.type import Side

Transform = Callable[[Node, tuple[Node, ...], Scope], Node]
"""Old node, its new inputs, the scope of its side -> new node."""


def make_node(op: Op, inputs: tuple[Node, ...], scope: Scope, source: str) -> Node:
    """A node whose type follows from its inputs."""
    return Node(op, inputs, op.result_type(tuple(node.type for node in inputs), scope), source)


def keep(node: Node, inputs: tuple[Node, ...], _scope: Scope) -> Node:
    """The same node, or a copy of it if its inputs have changed."""
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def rebuild(graph: Graph, transform: Transform) -> Graph:
    """Apply ``transform`` to every node, inputs first; roots follow. Names and types stay."""
    cache = _transformed(graph, Side.CACHE, transform)
    indexer = _transformed(graph, Side.INDEXER, transform)
    return replace(
        graph,
        field_writes=tuple(
            replace(write, value=cache[write.value]) for write in graph.field_writes
        ),
        state_writes=tuple(
            replace(write, value=indexer[write.value]) for write in graph.state_writes
        ),
        output=rebuild_output(graph.output, indexer),
    )


def _transformed(graph: Graph, side: Side, transform: Transform) -> dict[Node, Node]:
    scope = graph.scope(side)
    done: dict[Node, Node] = {}
    for node in graph.nodes(side):
        done[node] = transform(node, tuple(done[item] for item in node.inputs), scope)
    return done


def rebuild_output(output: Output, new: dict[Node, Node]) -> Output:
    """Return the output with each node replaced by the one that ``new`` has for it."""
    return Output(tuple(_branch(branch, new) for branch in output.branches), output.source)


def _branch(branch: Branch, new: dict[Node, Node]) -> Branch:
    estimate = branch.estimate
    if estimate is not None:
        estimate = Estimate(new[estimate.logits], new[estimate.values], estimate.over)
    return Branch(
        None if branch.selection is None else new[branch.selection],
        None if branch.gate is None else new[branch.gate],
        estimate,
    )
