"""Every ready flow: by the executor and by the definitions of ops, against its rule on paper."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.attention.flows.case import Case, Expected, decodes_of, longer, request_of
from tests.attention.flows.cases import CASES
from tests.attention.flows.executor import open_session, run_request, run_session
from tests.attention.oracle_flows.decode import Array, Moment
from tests.attention.oracle_ops.graph import HeadStep, Request, run_graph
from tilewright.attention.flow import trace_flow
from tilewright.attention.flow.registry import get, list_keys
from tilewright.attention.graph import Graph

RESERVED = ((1, 1), (0, 2))  # first and last pages


def expected_of(case: Case, request: Request) -> list[list[Expected]]:
    assert request.prompt_queries is not None
    return case.paper(decodes_of(case, request), request.prompt_queries)


@cache
def by_definition(case: Case) -> tuple[Graph, Request, list[list[HeadStep]]]:
    """A flow node by node with the definitions of ops: slow, so it is done once."""
    graph = trace_flow(case.build(), case.geometry)
    request = longer(request_of(case, 1), 4)
    return graph, request, list(run_graph(graph, request))


def assert_close(found: Array, wanted: Array) -> None:
    """Relative to the norm of a head's output, as float32 is held to."""
    norm = np.linalg.norm(wanted, axis=-1, keepdims=True)
    assert (np.abs(found - wanted) <= 1e-5 * norm).all()


def assert_same_scores(moment: Moment, result: HeadStep, wanted: Array) -> None:
    """What the flow ranks by, in the middle; pages that may not be chosen are masked."""
    (ranked,) = [node.inputs[0] for node in result.values if node.op.name == "TopK"]
    found = result.values[ranked][moment.middle, 0, 0]
    alive = found > -1e29
    np.testing.assert_allclose(found[alive], wanted[moment.middle][alive], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("reserved", RESERVED, ids=str)
def test_the_executor_does_what_the_rule_says(case: Case, reserved: tuple[int, int]) -> None:
    graph = trace_flow(case.build(), case.geometry)
    first, last = reserved
    request = replace(request_of(case, 2 + last), first_reserved=first, last_reserved=last)
    outcomes = run_session(graph, case, request)
    for head, steps in enumerate(expected_of(case, request)):
        for outcome, wanted in zip(outcomes, steps, strict=True):
            together = sorted({page for pages in wanted.pages for page in pages})
            assert outcome.pages[head] == together
            assert_close(outcome.out[head], wanted.out)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_definitions_of_ops_do_what_the_rule_says(case: Case) -> None:
    _, request, steps = by_definition(case)
    wanted = expected_of(case, request)
    for step, results in enumerate(steps):
        for head, result in enumerate(results):
            assert_close(result.out, wanted[head][step].out)
            scores = wanted[head][step].scores
            if scores is not None:
                assert_same_scores(decodes_of(case, request)[head].moment(step), result, scores)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_executor_keeps_what_the_definitions_of_ops_keep(case: Case) -> None:
    graph, request, steps = by_definition(case)
    session = open_session(graph, case, request)
    run_request(session, graph, request, "r")
    states = {item.name for item in graph.states}
    for head, result in enumerate(steps[-1]):
        for name, wanted in result.kept.items():
            found = (session.state if name in states else session.field)("r", 0, name)[head]
            np.testing.assert_allclose(found[: len(wanted)], wanted, rtol=1e-5, atol=1e-6)


def test_every_registered_flow_has_a_case() -> None:
    assert sorted(case.name for case in CASES) == list_keys()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_builds_the_flow_of_its_name(case: Case) -> None:
    assert type(case.build()) is get(case.name)
