"""The rules that every graph keeps, checked after tracing and after every pass."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from tilewright.attention.graph.graph import Branch, Graph, Node, Write, part_types
from tilewright.attention.graph.op import Scope
from tilewright.attention.graph.type import FORMAT, Leading, Side, ValueType
from tilewright.errors import FlowError, GraphError


def verify_graph(graph: Graph) -> None:
    """Raise a `GraphError` that names the rule, the node and its line."""
    owners = {
        "Input": [name for name, _ in graph.inputs],
        "FieldRead": [item.name for item in graph.fields],
        "StateRead": [item.name for item in graph.states],
        "ParameterRead": [item.name for item in graph.parameters],
    }
    _check_names(graph, owners)
    for side in Side:
        scope = graph.scope(side)
        for node in graph.nodes(side):
            _check_node(graph, node, scope, owners)
    reserved = graph.geometry.reserved_fields
    states = {item.name: item.type for item in graph.states}
    own = {item.name: item.type for item in graph.fields if item.name not in reserved}
    _check_writes(graph, "field", graph.field_writes, own | states)
    _check_writes(graph, "state", graph.state_writes, states)
    unwritten = sorted(states.keys() - {write.target for write in graph.state_writes})
    if unwritten:
        found = f"no write to {', '.join(unwritten)}"
        raise _error(graph, "states", found, "one write each", "make it a field")
    if not graph.output.branches:
        raise _error(graph, "output", "no branch", "at least one", "end the flow in a selection")
    for index, branch in enumerate(graph.output.branches):
        _check_branch(graph, index, branch)


Owners = Mapping[str, Sequence[str]]
"""Names of variables by the op that reads them."""


def _check_names(graph: Graph, owners: Owners) -> None:
    for name, count in Counter(chain.from_iterable(owners.values())).items():
        if count > 1:
            found = f"{count} variables named {name!r}"
            raise _error(graph, "variables", found, "one owner for a name", "rename one")
    reserved = graph.geometry.reserved_fields
    missing = sorted(reserved.keys() - set(owners["FieldRead"]))
    if missing:
        found = f"no field {', '.join(missing)}"
        raise _error(graph, "variables", found, f"fields {', '.join(reserved)}", "declare them")


def _check_node(graph: Graph, node: Node, scope: Scope, owners: Owners) -> None:
    where = f"{scope.side} side, {node.op.name} at {node.source or 'no line'}"
    variable = getattr(node.op, "variable", None)
    known = owners.get(node.op.name, ())
    if variable is not None and variable not in known:
        expected = f"one of {', '.join(known) or '(none)'}"
        raise _error(graph, where, f"a read of {variable!r}", expected, "declare it")
    try:
        wanted = node.op.result_type(tuple(item.type for item in node.inputs), scope)
    except FlowError as error:
        raise _error(graph, where, error.found, error.expected, error.fix) from error
    if wanted != node.type:
        fix = "build nodes with make_node"
        raise _error(graph, where, f"the type {node.type}", str(wanted), fix)


def _check_writes(
    graph: Graph,
    kind: str,
    writes: Sequence[Write],
    targets: Mapping[str, ValueType],
) -> None:
    for name, count in Counter(write.target for write in writes).items():
        if count > 1:
            found, fix = f"{count} writes", "combine the values, then write once"
            raise _error(graph, f"{kind} {name!r}", found, "one write", fix)
    for write in writes:
        where, value = f"{kind} {write.target!r}", write.value
        target = targets.get(write.target)
        if target is None:
            raise _error(graph, where, "a write", "a declared variable of the flow", "declare it")
        fills = value.op.name == "Constant" and value.type.shape == (1, 1)
        fits = fills or value.type.shape == target.shape
        if not fits or value.type.dtype.computed is not target.dtype.computed:
            expected = f"inner shape {target.shape} of {target.dtype.computed}"
            raise _error(graph, where, str(value.type), expected, "reshape or Cast the value")


def _check_branch(graph: Graph, index: int, branch: Branch) -> None:
    where = f"output, branch {index}"
    if branch.selection is None and branch.estimate is None:
        fix = "give it a selection or an estimate"
        raise _error(graph, where, "nothing to attend to", "a selection or an estimate", fix)
    entries = branch.estimate.logits.type.shape[0] if branch.estimate else 0
    wanted = part_types(graph.geometry, entries)
    for name, node in branch.parts().items():
        found, (dtype, shapes) = node.type, wanted[name]
        fits = found.leading is Leading.PAGES and found.dtype.computed is dtype
        expected = f"{dtype} per page, inner shape {' or '.join(map(str, shapes))}"
        fix = "change the value"
        if name == "gate":
            fits = found.format is FORMAT.BATCHED
            expected = f"BATCHED [1, 1, 1] or [1, {graph.geometry.query_heads}, 1]"
            fix = "reduce or transpose it"
        if not fits or found.shape not in shapes:
            raise _error(graph, f"{where}, {name}", str(found), expected, fix)


def _error(graph: Graph, where: str, found: str, expected: str, fix: str) -> GraphError:
    return GraphError(f"graph {graph.name!r}, {where}", found, expected, fix)
