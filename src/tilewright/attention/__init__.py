"""Sparse attention: flows, the compiler of flows, and its backends."""

from tilewright.attention.abs import (
    FORMAT,
    BranchSpec,
    ContextBase,
    Parameter,
    as_vtensor,
    vOp,
    vTensor,
)
from tilewright.attention.compat import (
    find_flow,
    install_vortex_alias,
    load_flows,
    remove_vortex_alias,
    vortex_names,
)
from tilewright.attention.flow import (
    FieldSpec,
    build_vflow,
    examine_flow,
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
    "install_vortex_alias",
    "load_flows",
    "normalize_vortex_config",
    "optimize_graph",
    "register",
    "remove_vortex_alias",
    "trace_flow",
    "vFlow",
    "vFlowMLA",
    "vOp",
    "vTensor",
    "vortex_names",
)
