"""Immutable nodes, values and state variables of a traced flow."""

from tilewright.attention.graph.geometry import SCALED_DTYPES, FlowKind, Geometry, dtypes_of
from tilewright.attention.graph.graph import (
    Branch,
    Estimate,
    EstimateOver,
    Field,
    FieldWrite,
    Graph,
    Inherit,
    Node,
    Output,
    Parameter,
    StateVar,
    StateWrite,
    Transform,
    keep,
    make_node,
    rebuild,
    rebuild_output,
    walk,
)
from tilewright.attention.graph.op import Op, Scope, Types
from tilewright.attention.graph.text import graph_hash, graph_text
from tilewright.attention.graph.type import FORMAT, DType, Leading, Side, Span, ValueType
from tilewright.attention.graph.verify import verify_graph

__all__ = (
    "FORMAT",
    "SCALED_DTYPES",
    "Branch",
    "DType",
    "Estimate",
    "EstimateOver",
    "Field",
    "FieldWrite",
    "FlowKind",
    "Geometry",
    "Graph",
    "Inherit",
    "Leading",
    "Node",
    "Op",
    "Output",
    "Parameter",
    "Scope",
    "Side",
    "Span",
    "StateVar",
    "StateWrite",
    "Transform",
    "Types",
    "ValueType",
    "dtypes_of",
    "graph_hash",
    "graph_text",
    "keep",
    "make_node",
    "rebuild",
    "rebuild_output",
    "verify_graph",
    "walk",
)
