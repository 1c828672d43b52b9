"""Running the nodes of one side of a graph for one request."""

from collections.abc import Iterable, Mapping
from typing import Any

from tilewright.attention.backends.reference.evaluator import Evaluator
from tilewright.attention.backends.reference.frame import Frame, Sources
from tilewright.attention.backends.reference.linear import PAGED_OPERANDS
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.paged import PagedField
from tilewright.attention.backends.reference.table import EVALUATORS
from tilewright.attention.graph import Node, Op, Types, walk
from tilewright.attention.ops import leaf

SOURCES: frozenset[type[Op]] = frozenset(
    {
        leaf.Input,
        leaf.FieldRead,
        leaf.StateRead,
        leaf.ParameterRead,
        leaf.AttentionMass,
        leaf.PromptMass,
    }
)
"""Ops that read what the session holds."""


def run_nodes(
    roots: Iterable[Node],
    frame: Frame,
    sources: Sources,
    evaluators: Mapping[type[Op], Evaluator] = EVALUATORS,
) -> dict[Node, Array]:
    """The values of the roots; each node that they need is evaluated once."""
    wanted = tuple(roots)
    values: dict[Node, Any] = {}
    with frame.namespace.quiet():
        for node in walk(wanted):
            if type(node.op) in SOURCES:
                values[node] = _read(node.op, sources)
            else:
                operands = tuple(values[item] for item in node.inputs)
                types = tuple(item.type for item in node.inputs)
                values[node] = evaluate_op(node.op, operands, types, frame, evaluators)
        return {node: _array(values[node]) for node in wanted}


def evaluate_op(
    op: Op,
    operands: tuple[Any, ...],
    types: Types,
    frame: Frame,
    evaluators: Mapping[type[Op], Evaluator] = EVALUATORS,
) -> Array:
    """Evaluate one op; a field that lies in pages is gathered first, unless the op does that."""
    if type(op) not in PAGED_OPERANDS:
        operands = tuple(_array(value) for value in operands)
    return evaluators[type(op)](op, operands, types, frame)


def _read(op: Any, sources: Sources) -> Any:
    match op:
        case leaf.Input():
            return sources.input(op.variable)
        case leaf.FieldRead():
            return sources.field(op.variable)
        case leaf.StateRead():
            return sources.state(op.variable)
        case leaf.ParameterRead():
            return sources.parameter(op.variable)
        case leaf.AttentionMass():
            return sources.mass()
        case _:
            return sources.prompt_mass(op.window)


def _array(value: Any) -> Array:
    return value.whole() if isinstance(value, PagedField) else value
