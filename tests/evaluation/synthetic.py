"""A small case of drawn keys, and flows traced for it."""

from functools import cache

from tilewright.attention.graph import Graph
from tilewright.attention.planner import PlanSpec, Reserved
from tilewright.evaluation.source.base import Case, SourceSpec
from tilewright.evaluation.source.synthetic import SyntheticSource
from tilewright.evaluation.stream import AttentionSamples, replay_flow
from tilewright.serving.decode import kept_queries_of
from tilewright.serving.model_flow import plan_pages, trace_for_model

__all__ = ("SPEC", "drawn_case", "planned", "replayed", "traced")

SPEC = SourceSpec(context=120, steps=4, cases=1, seed=5, page_size=8)


@cache
def drawn_case(seed: int = 5) -> Case:
    spec = SourceSpec(context=120, steps=4, cases=1, seed=seed, page_size=8)
    return SyntheticSource(spec).draw(0, kept_queries=kept_queries_of(traced("snapkv")))


@cache
def traced(flow: str) -> Graph:
    return trace_for_model(flow, SyntheticSource(SPEC).geometry)[1]


def planned(budget: int) -> PlanSpec:
    return plan_pages(budget, Reserved())


def replayed(flow: str, budget: int, seed: int = 5) -> AttentionSamples:
    return replay_flow(drawn_case(seed).stream, traced(flow), planned(budget))
