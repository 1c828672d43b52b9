"""The authoring classes, the registry, the loader of flow files, and the tracer."""

from tilewright.attention.flow.flow import FieldSpec, FlowBase, vFlow, vFlowMLA
from tilewright.attention.flow.lint import Lint
from tilewright.attention.flow.loader import build_vflow, find_flow, load_flows, make_flow
from tilewright.attention.flow.package import ImportNames
from tilewright.attention.flow.registry import register
from tilewright.attention.flow.trace import TracedFlow, examine_flow, trace_flow

__all__ = (
    "FieldSpec",
    "FlowBase",
    "ImportNames",
    "Lint",
    "TracedFlow",
    "build_vflow",
    "examine_flow",
    "find_flow",
    "load_flows",
    "make_flow",
    "register",
    "trace_flow",
    "vFlow",
    "vFlowMLA",
)
