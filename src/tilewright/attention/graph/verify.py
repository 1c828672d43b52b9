"""The rules that every graph keeps, checked after tracing and after every pass."""

from collections import Counter
from collections.abc import Iterable

from tilewright.attention.graph.graph import Branch, Graph, Node
from tilewright.attention.graph.type import FORMAT, DType, Leading, Side, ValueType
from tilewright.errors import FlowError, GraphError


def verify_graph(graph: Graph) -> None:
    """Raise a `GraphError` that names the rule, the node and its line."""
    _check_names(graph)
    for side in Side:
        for node in graph.nodes(side):
            _check_node(graph, node, side)
    _check_field_writes(graph)
    _check_state_writes(graph)
    if not graph.output.branches:
        raise _error(graph, "output", "no branch", "at least one", "end the flow in a selection")
    for index, branch in enumerate(graph.output.branches):
        _check_branch(graph, index, branch)


def _check_names(graph: Graph) -> None:
    names = [name for name, _ in graph.inputs]
    names += [item.name for item in graph.fields]
    names += [item.name for item in graph.states]
    names += [item.name for item in graph.parameters]
    for name, count in Counter(names).items():
        if count > 1:
            found = f"{count} variables named {name!r}"
            raise _error(graph, "variables", found, "one owner for a name", "rename one")
    reserved = graph.geometry.reserved_fields
    missing = sorted(reserved.keys() - {item.name for item in graph.fields})
    if missing:
        found = f"no field {', '.join(missing)}"
        raise _error(graph, "variables", found, f"fields {', '.join(reserved)}", "declare them")


def _check_node(graph: Graph, node: Node, side: Side) -> None:
    where = f"{side} side, {node.op.name} at {node.source or 'no line'}"
    variable = getattr(node.op, "variable", None)
    if variable is not None:
        _check_variable(graph, node, str(variable), where)
    try:
        wanted = node.op.result_type(tuple(item.type for item in node.inputs), graph.scope(side))
    except FlowError as error:
        raise _error(graph, where, error.found, error.expected, error.fix) from error
    if wanted != node.type:
        fix = "build nodes with make_node"
        raise _error(graph, where, f"the type {node.type}", str(wanted), fix)


def _check_variable(graph: Graph, node: Node, variable: str, where: str) -> None:
    owners: dict[str, Iterable[str]] = {
        "Input": (name for name, _ in graph.inputs),
        "FieldRead": (item.name for item in graph.fields),
        "StateRead": (item.name for item in graph.states),
        "ParameterRead": (item.name for item in graph.parameters),
    }
    known = tuple(owners.get(node.op.name, ()))
    if variable not in known:
        expected = f"one of {', '.join(known) or '(none)'}"
        raise _error(graph, where, f"a read of {variable!r}", expected, "declare it")


def _check_field_writes(graph: Graph) -> None:
    targets = {item.name: item.type for item in graph.fields}
    targets = {
        name: kind for name, kind in targets.items() if name not in graph.geometry.reserved_fields
    }
    targets |= {item.name: item.type for item in graph.states}
    _check_one_each(graph, "field", [write.target for write in graph.field_writes])
    for write in graph.field_writes:
        _check_write(graph, f"field {write.target!r}", targets.get(write.target), write.value)


def _check_state_writes(graph: Graph) -> None:
    states = {item.name: item.type for item in graph.states}
    _check_one_each(graph, "state", [write.target for write in graph.state_writes])
    for write in graph.state_writes:
        _check_write(graph, f"state {write.target!r}", states.get(write.target), write.value)
    unwritten = sorted(states.keys() - {write.target for write in graph.state_writes})
    if unwritten:
        found = f"no write to {', '.join(unwritten)}"
        raise _error(graph, "states", found, "one write each", "make it a field")


def _check_one_each(graph: Graph, kind: str, targets: list[str]) -> None:
    for name, count in Counter(targets).items():
        if count > 1:
            found, fix = f"{count} writes", "combine the values, then write once"
            raise _error(graph, f"{kind} {name!r}", found, "one write", fix)


def _check_write(graph: Graph, where: str, target: ValueType | None, value: Node) -> None:
    if target is None:
        raise _error(graph, where, "a write", "a declared variable of the flow", "declare it")
    constant = value.op.name == "Constant"
    shape_fits = value.type.shape == target.shape or (constant and value.type.shape == (1, 1))
    if not shape_fits or value.type.dtype.computed is not target.dtype.computed:
        expected = f"inner shape {target.shape} of {target.dtype.computed}"
        raise _error(graph, where, str(value.type), expected, "reshape or Cast the value")


def _check_branch(graph: Graph, index: int, branch: Branch) -> None:
    heads = graph.geometry.query_heads
    where = f"output, branch {index}"
    if branch.selection is None and branch.estimate is None:
        fix = "give it a selection or an estimate"
        raise _error(graph, where, "nothing to attend to", "a selection or an estimate", fix)
    if branch.selection is not None:
        shapes = ((1, 1), (1, heads))
        _check_part(graph, f"{where}, selection", branch.selection, DType.BOOL, shapes)
    if branch.gate is not None:
        gate = branch.gate.type
        if gate.format is not FORMAT.BATCHED or gate.shape not in ((1, 1), (heads, 1)):
            expected = f"BATCHED [1, 1, 1] or [1, {heads}, 1]"
            raise _error(graph, f"{where}, gate", str(gate), expected, "reduce or transpose it")
    if branch.estimate is not None:
        entries = branch.estimate.logits.type.shape[0]
        shape = ((entries, heads),)
        _check_part(graph, f"{where}, logits", branch.estimate.logits, DType.FLOAT32, shape)
        shape = ((entries, graph.geometry.value_dim),)
        _check_part(graph, f"{where}, values", branch.estimate.values, DType.FLOAT32, shape)


def _check_part(
    graph: Graph, where: str, node: Node, dtype: DType, shapes: tuple[tuple[int, int], ...]
) -> None:
    found = node.type
    fits = found.leading is Leading.PAGES and found.dtype.computed is dtype
    if not fits or found.shape not in shapes:
        expected = f"{dtype} per page, inner shape {' or '.join(map(str, shapes))}"
        raise _error(graph, where, str(found), expected, "change the value")


def _error(graph: Graph, where: str, found: str, expected: str, fix: str) -> GraphError:
    return GraphError(f"graph {graph.name!r}, {where}", found, expected, fix)
