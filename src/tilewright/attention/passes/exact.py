"""Passes that keep values bit for bit."""

import hashlib
from collections.abc import Callable
from dataclasses import replace

from tilewright.attention.graph import (
    FORMAT,
    DType,
    Graph,
    Node,
    Op,
    Scope,
    Side,
    keep,
    make_node,
    rebuild,
)
from tilewright.attention.ops import binary, compare, layout, reduce, selection, unary
from tilewright.attention.ops.leaf import Constant


def infer_types(graph: Graph) -> Graph:
    """Every node gets the type that its op infers from its inputs and the graph's variables.

    So a graph whose geometry or fields were replaced gets types that fit, or an error.
    """

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        made = make_node(node.op, inputs, scope, node.source)
        return node if made.type == node.type and inputs == node.inputs else made

    return rebuild(graph, transform)


Rule = Callable[[Node, Scope], Node | None]

_COMMUTATIVE = (
    binary.Multiply,
    binary.Maximum,
    binary.Minimum,
    binary.BitAnd,
    binary.BitOr,
    binary.BitXor,
    compare.Equal,
    compare.NotEqual,
    compare.WhereEqual,
    compare.WhereNotEqual,
)
_TURNED: dict[type[Op], Op] = {
    compare.Greater: compare.Less(),
    compare.GreaterEqual: compare.LessEqual(),
    compare.WhereGreater: compare.WhereLess(),
    compare.WhereGreaterEqual: compare.WhereLessEqual(),
}


def canonical_form(graph: Graph) -> Graph:
    """Operands in a fixed order, no identities, reductions before transposes."""
    digests: dict[Node, str] = {}

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        return _simplify(keep(node, inputs, scope), scope, digests)

    return rebuild(graph, transform)


def _simplify(node: Node, scope: Scope, digests: dict[Node, str]) -> Node:
    node = _ordered(node, digests)
    for rule in _RULES:
        better = rule(node, scope)
        if better is not None:
            return _simplify(better, scope, digests)
    return node


def _ordered(node: Node, digests: dict[Node, str]) -> Node:
    """Operands that may change places: values per row first, then by what they compute.

    So the order depends on nothing but meaning: not on lines, not on what was computed before.
    """
    symmetric = isinstance(node.op, binary.Add) and node.op.alpha == node.op.beta
    if not symmetric and not isinstance(node.op, _COMMUTATIVE):
        return node

    def rank(item: Node) -> tuple[bool, str]:
        return (item.type.format is not FORMAT.BATCHED, _digest(item, digests))

    inputs = tuple(sorted(node.inputs, key=rank))
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def _digest(node: Node, digests: dict[Node, str]) -> str:
    if node not in digests:
        parts = [repr(node.op), *(_digest(operand, digests) for operand in node.inputs)]
        digests[node] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return digests[node]


def _identity(node: Node, _scope: Scope) -> Node | None:
    """What gives back its only input, type and all."""
    if len(node.inputs) != 1 or node.type != node.inputs[0].type:
        return None
    op = node.op
    same = (
        isinstance(op, unary.Cast | layout.Reshape | layout.Slice)
        or (isinstance(op, unary.Add_Mul) and (op.alpha, op.beta) == (0.0, 1.0))
        or (isinstance(op, layout.Transpose) and node.type.shape == (1, 1))
        or (
            isinstance(op, reduce.Sum | reduce.Max | reduce.Min)
            and op.dim != 0
            and node.inputs[0].type.shape[op.dim - 1] == 1
        )
    )
    return node.inputs[0] if same else None


def _double(node: Node, _scope: Scope) -> Node | None:
    """Transpose and Complement undo themselves."""
    if not isinstance(node.op, layout.Transpose | selection.Complement):
        return None
    (inner,) = node.inputs
    if type(inner.op) is type(node.op) and inner.inputs[0].type == node.type:
        return inner.inputs[0]
    return None


def _constant_operand(node: Node, scope: Scope) -> Node | None:
    """``x + c``, ``x - c`` and ``x * c`` become Add_Mul."""
    if node.type.dtype is not DType.FLOAT32 or len(node.inputs) != 2:
        return None
    x, y = node.inputs
    if isinstance(x.op, Constant) == isinstance(y.op, Constant):
        return None
    constant, value = (x, y) if isinstance(x.op, Constant) else (y, x)
    number = constant.op.value if isinstance(constant.op, Constant) else 0.0
    op: Op | None = None
    if isinstance(node.op, binary.Multiply):
        op = unary.Add_Mul(0.0, number)
    elif isinstance(node.op, binary.Add) and {abs(node.op.alpha), abs(node.op.beta)} == {1.0}:
        sign = node.op.alpha if constant is x else node.op.beta
        other = node.op.beta if constant is x else node.op.alpha
        op = unary.Add_Mul(sign * number, other)
    if op is None or value.type.dtype.is_integer:
        return None
    made = make_node(op, (value,), scope, node.source)
    return made if made.type == node.type else None


def _turned_comparison(node: Node, scope: Scope) -> Node | None:
    op = _TURNED.get(type(node.op))
    return None if op is None else make_node(op, node.inputs[::-1], scope, node.source)


def _reduced_transpose(node: Node, scope: Scope) -> Node | None:
    """Reduce first, then transpose what is left."""
    if not isinstance(node.op, reduce.Reduction) or node.op.dim == 0:
        return None
    (inner,) = node.inputs
    if not isinstance(inner.op, layout.Transpose):
        return None
    op = replace(node.op, dim=3 - node.op.dim)
    reduced = make_node(op, inner.inputs, scope, node.source)
    turned = make_node(layout.Transpose(), (reduced,), scope, node.source)
    return turned if turned.type == node.type else None


def _flat_logic(node: Node, scope: Scope) -> Node | None:
    """Nested unions and intersections become one, without repetitions."""
    if not isinstance(node.op, selection.Union | selection.Intersection):
        return None
    flat: dict[Node, None] = {}
    for item in node.inputs:
        parts = item.inputs if type(item.op) is type(node.op) else (item,)
        flat.update(dict.fromkeys(parts))
    if len(flat) == 1:
        (only,) = flat
        return only if only.type == node.type else None
    inputs = tuple(flat)
    return None if inputs == node.inputs else make_node(node.op, inputs, scope, node.source)


_RULES: tuple[Rule, ...] = (
    _identity,
    _double,
    _constant_operand,
    _turned_comparison,
    _reduced_transpose,
    _flat_logic,
)


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
