"""Sparse attention: flows, the compiler of flows, and its backends."""

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.abs import (
    FORMAT,
    BranchSpec,
    ContextBase,
    Parameter,
    as_vtensor,
    vOp,
    vTensor,
)
from tilewright.attention.flow import (
    FieldSpec,
    build_vflow,
    examine_flow,
    find_flow,
    load_flows,
    register,
    trace_flow,
    vFlow,
    vFlowMLA,
)
from tilewright.attention.flow.config import VortexConfig, normalize_vortex_config
from tilewright.attention.graph import Geometry, Graph, graph_hash, graph_text
from tilewright.attention.passes import optimize_graph
from tilewright.attention.utils import Schedule

__all__ = (
    "FORMAT",
    "BranchSpec",
    "ContextBase",
    "FieldSpec",
    "Geometry",
    "Graph",
    "Parameter",
    "Schedule",
    "VortexConfig",
    "as_vtensor",
    "build_vflow",
    "examine_flow",
    "find_flow",
    "graph_hash",
    "graph_text",
    "load_flows",
    "normalize_vortex_config",
    "optimize_graph",
    "register",
    "trace_flow",
    "vFlow",
    "vFlowMLA",
    "vOp",
    "vTensor",
)
