"""Flows as a model can run them: of its kind of attention, fed by the query alone."""

from collections.abc import Sequence

from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.flow.trace import own_inputs
from tilewright.attention.graph import FlowKind, Geometry, Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import PlanSpec, Reserved, StateAdvance, parse_policy
from tilewright.errors import ModelError, PlanError, UsageError
from tilewright.interop.vortex import find_flow

STAND_INS = {FlowKind.GQA: "streaming_llm", FlowKind.MLA: "streaming_llm_mla"}


def stand_in_for(kind: FlowKind) -> str:
    """A flow that keeps nothing in pages: a session needs one, though dense layers never ask it."""
    return STAND_INS[kind]


def kind_of_flows(flows: Sequence[str]) -> FlowKind:
    """The kind that ready flows or flow files have in common; flows of two kinds are refused."""
    kinds = {flow: find_flow(flow)[1].kind for flow in flows}
    if len(set(kinds.values())) > 1:
        found = ", ".join(f"{flow} ({kind.value})" for flow, kind in kinds.items())
        fix = "compare them apart: their keys and values are not the same"
        raise UsageError("flows", found, "flows of one kind", fix)
    return next(iter(kinds.values()))


def trace_for_model(flow: str, geometry: Geometry, *, name: str | None = None) -> tuple[str, Graph]:
    """A ready flow or the flow of a file (``name`` picks one), optimized, with its label."""
    label, made = find_flow(flow, name=name)
    _check_fits(label, made, geometry.kind)
    return label, optimize_graph(trace_flow(made, geometry, name=label))


def plan_dense(layers: int, reserved: Reserved) -> PlanSpec:
    return PlanSpec(reserved=reserved, dense_layers=frozenset(range(layers)))


def check_dense_layers(wanted: int, layers: int) -> None:
    """Refuse more dense layers than a model has."""
    if wanted > layers:
        found, fix = f"{wanted} dense layers", f"say {layers} to keep all of them dense"
        raise UsageError("--dense-layers", found, f"at most the {layers} of the model", fix)


def plan_pages(
    budget: int,
    reserved: Reserved,
    *,
    dense_layers: int = 0,
    state_advance: StateAdvance = StateAdvance.VORTEX,
) -> PlanSpec:
    """Plan ``budget`` pages of each row, reserved ones included; the first layers may stay dense.

    Raises PlanError for a budget below the reserved pages.
    """
    if budget < reserved.total:  # else the first step would find out, amid the work
        expected = f"at least the {reserved.total} reserved ones"
        raise PlanError("budget", f"{budget} pages", expected, "raise the budget")
    return PlanSpec(
        budget=parse_policy(str(budget)),
        reserved=reserved,
        dense_layers=frozenset(range(dense_layers)),
        state_advance=state_advance,
    )


def _check_fits(label: str, flow: FlowBase, kind: FlowKind) -> None:
    """A model gives queries, keys and values; what else a flow asks for it has not."""
    where = f"flow {label!r}"
    if flow.kind is not kind:
        expected = f"a flow of kind {kind.value}, as the model's attention is"
        raise ModelError(where, f"kind {flow.kind.value}", expected, "choose another flow")
    more = sorted(own_inputs(flow, label))
    if more:
        found = f"inputs {', '.join(more)} beside the query"
        raise ModelError(where, found, "the query alone", "choose another flow")
