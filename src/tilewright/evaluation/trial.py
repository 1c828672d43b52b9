"""One flow at one budget in one case."""

from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.planner import PlanSpec
from tilewright.evaluation.replay import replay_flow
from tilewright.evaluation.source.base import Case
from tilewright.evaluation.words import WordSamples, say_words
from tilewright.records.attention.compare import TrialRecord


def run_trial(
    case: Case, graph: Graph, plan: PlanSpec, *, key: str, flow: str, budget: int, index: int
) -> TrialRecord:
    attention = replay_flow(case.stream, graph, plan)
    said = None if case.words is None else say_words(case.words, graph, plan)
    hits, dense_hits, asked = _needles(case, attention.needle_hits, said)
    return TrialRecord(
        key=key,
        flow=flow,
        budget=budget,
        case=index,
        graph_hash=graph_hash(graph),
        mass=attention.mass,
        head_mass=attention.head_mass,
        output_error=attention.output_error,
        oracle_ratio=attention.oracle_ratio,
        stability=attention.stability,
        num_bytes=attention.num_bytes,
        dense_bytes=attention.dense_bytes,
        kl=None if said is None else said.kl,
        nll=None if said is None else said.nll,
        dense_nll=None if said is None else said.dense_nll,
        needle_hits=hits,
        dense_needle_hits=dense_hits,
        needle_cases=asked,
        first_pages=attention.first_pages,
    )


def _needles(
    case: Case, planted_hits: int, said: WordSamples | None
) -> tuple[int | None, int | None, int | None]:
    """Hits, hits of dense attention, and how many there are: of answers, or of planted keys."""
    if said is not None and case.words is not None and case.words.needles:
        return said.needle_hits, said.dense_needle_hits, len(case.words.needles)
    if case.stream.needles:
        return planted_hits, len(case.stream.needles), len(case.stream.needles)
    return None, None, None
