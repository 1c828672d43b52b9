"""Latencies from the simulator: a step without values, whose pages are known or drawn."""

from tilewright.attention.backends.machine import Recorded, SelectionModel, Uniform
from tilewright.serving.model_flow import plan_pages
from tilewright.studies.decode.step import DecodeStep, simulate_step
from tilewright.studies.step_latency import LatencyQuery


def simulate_latency(query: LatencyQuery) -> int:
    """Picoseconds from the host's first submission to its knowing of the last completion."""
    step = DecodeStep(
        machine=query.machine.machine,
        graph=query.graph,
        contexts=query.contexts,
        kv_heads=query.kv_heads,
        plan=plan_pages(query.budget, query.reserved, state_advance=query.state_advance),
        placement=query.placement,
        is_dense=query.is_dense,
        selection=_selection(query),
        seed=query.seed,
    )
    return simulate_step(step, tells_stages=False).latency_ps


def _selection(query: LatencyQuery) -> SelectionModel | None:
    if query.is_dense:
        return None
    return Uniform(query.seed) if query.pages is None else Recorded(query.pages)
