"""The executor computes on random graphs what the definitions of ops say, step after step."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.attention.flows.case import Case
from tests.attention.flows.executor import open_session, run_request
from tests.attention.graph.random_graphs import GEOMETRY, graphs
from tests.attention.oracle_ops.graph import HeadStep, Request, run_graph
from tests.attention.oracle_ops.row import Array
from tilewright.attention.flows import Quest
from tilewright.attention.graph import Graph

assert settings.default is not None
FEWER = settings(max_examples=settings.default.max_examples // 4)  # of loops over all elements
HEADS, PROMPT, STEPS, BUDGET = 2, 18, 4, 2
PLACE = Case("random", Quest, lambda _decodes, _prompt: [], block_size=GEOMETRY.page_size)


def small_request(seed: int) -> Request:
    """Small whole numbers, so that sums are exact whatever their order."""
    generator = np.random.default_rng(seed)

    def drawn(*shape: int) -> Array:
        return generator.integers(-2, 3, size=shape).astype(np.float64)

    width, group = GEOMETRY.key_dim, GEOMETRY.query_heads
    return Request(
        keys=drawn(HEADS, PROMPT + STEPS, width),
        values=drawn(HEADS, PROMPT + STEPS, width),
        queries=drawn(HEADS, STEPS, group, width),
        prompt_tokens=PROMPT,
        budget=BUDGET,
        prompt_queries=drawn(HEADS, PROMPT, group, width),
    )


@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
@FEWER
def test_states_and_outputs_follow_the_definitions(graph: Graph, seed: int) -> None:
    request = small_request(seed)
    steps = list(run_graph(graph, request))
    largest = max(np.abs(value).max() for step in steps for head in step for value in floats(head))
    assume(largest < 1e6)  # beyond it float32 has too few digits to compare
    session = open_session(graph, PLACE, request)
    outcomes = run_request(session, graph, request, "r")
    state = np.asarray(session.state("r", 0, "kept"))
    for head, last in enumerate(steps[-1]):
        wanted = last.kept["kept"]
        tolerance = 1e-5 * max(1.0, float(largest))
        np.testing.assert_allclose(state[head, : len(wanted)], wanted, rtol=1e-5, atol=tolerance)
    for outcome, results in zip(outcomes, steps, strict=True):
        for head, result in enumerate(results):
            if outcome.pages[head] == result.pages[0]:  # else two scores were all but equal
                np.testing.assert_allclose(outcome.out[head], result.out, rtol=1e-4, atol=1e-5)


def floats(step: HeadStep) -> list[Array]:
    return [value for value in step.values.values() if value.dtype.kind == "f"]
