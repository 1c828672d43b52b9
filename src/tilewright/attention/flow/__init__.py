"""The authoring classes, the registry, the loader of flow files, and the tracer."""

from tilewright.attention.flow.field_spec import FieldSpec
from tilewright.attention.flow.flow import FlowBase, vFlow
from tilewright.attention.flow.flow_mla import vFlowMLA
from tilewright.attention.flow.lint import Lint
from tilewright.attention.flow.loader import build_vflow, load_flow_file, make_flow
from tilewright.attention.flow.registry import register
from tilewright.attention.flow.trace import TracedFlow, examine_flow, trace_flow

__all__ = (
    "FieldSpec",
    "FlowBase",
    "Lint",
    "TracedFlow",
    "build_vflow",
    "examine_flow",
    "load_flow_file",
    "make_flow",
    "register",
    "trace_flow",
    "vFlow",
    "vFlowMLA",
)
