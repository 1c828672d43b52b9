"""Ops in array-API code: how each is evaluated, and the nodes of a graph for one request."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op.elementwise import ELEMENTWISE
from tilewright.attention.backends.reference.op.frame import Evaluator, EvaluatorTable, Frame
from tilewright.attention.backends.reference.op.layout import LAYOUT, POSITIONS
from tilewright.attention.backends.reference.op.linear import LINEAR, PAGED_OPERANDS
from tilewright.attention.backends.reference.op.page_axis import PAGE_AXIS
from tilewright.attention.backends.reference.op.reduction import REDUCTIONS
from tilewright.attention.backends.reference.op.selection import SELECTIONS
from tilewright.attention.backends.reference.pages import whole
from tilewright.attention.graph import Node, Op, Types, walk
from tilewright.attention.ops import leaf
from tilewright.errors import RegistryError

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


def build_evaluators(*tables: EvaluatorTable) -> Mapping[type[Op], Evaluator]:
    found: EvaluatorTable = {}
    for table in tables:
        for op, evaluator in table.items():
            if op in found:
                raise RegistryError("evaluators", f"two for {op.__name__}", "one", "remove one")
            found[op] = evaluator
    return MappingProxyType(found)


EVALUATORS = build_evaluators(
    ELEMENTWISE, LAYOUT, LINEAR, PAGE_AXIS, POSITIONS, REDUCTIONS, SELECTIONS
)
"""Every op but the sources, which a program reads from the session."""


def run_nodes(
    roots: Iterable[Node],
    frame: Frame,
    sources: Callable[[Any], Any],
    evaluators: Mapping[type[Op], Evaluator] = EVALUATORS,
) -> dict[Node, Array]:
    """Return the values of the roots; each node that they need is evaluated once.

    ``sources`` gives the value of an op that reads what the session holds.
    """
    wanted = tuple(roots)
    values: dict[Node, Any] = {}
    with frame.namespace.quiet():
        for node in walk(wanted):
            if type(node.op) in SOURCES:
                values[node] = sources(node.op)
            else:
                operands = tuple(values[item] for item in node.inputs)
                types = tuple(item.type for item in node.inputs)
                values[node] = evaluate_op(node.op, operands, types, frame, evaluators)
        return {node: whole(values[node]) for node in wanted}


def evaluate_op(
    op: Op,
    operands: tuple[Any, ...],
    types: Types,
    frame: Frame,
    evaluators: Mapping[type[Op], Evaluator] = EVALUATORS,
) -> Array:
    """Evaluate one op; a field that lies in pages is gathered first, unless the op does that."""
    if type(op) not in PAGED_OPERANDS:
        operands = tuple(whole(value) for value in operands)
    return evaluators[type(op)](frame, op, types, *operands)
