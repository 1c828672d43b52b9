"""Laws that every ready flow keeps, whatever its rule."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attention.flows.case import Case, decodes_of, request_of
from tests.attention.flows.cases import CASES
from tests.attention.flows.executor import Outcome, open_session, run_request, run_session
from tests.attention.oracle_flows.decode import attend
from tests.attention.oracle_ops.graph import Request
from tilewright.attention.flow import examine_flow, trace_flow
from tilewright.attention.flows import ScoredFlow, ScoredFlowMLA
from tilewright.attention.passes import PASSES, optimize_graph

WHOLE_PAGES = [case for case in CASES if case.block_size > 1]
ANY_PAGE = [
    case
    for case in WHOLE_PAGES
    if not case.name.startswith(
        ("lserve", "rope_unaware_lserve", "infllm", "nsa", "duo", "learned_f", "nsa_selection")
    )
]
PLAIN = [
    case
    for case in CASES
    if isinstance(case.build(), ScoredFlow | ScoredFlowMLA)
    and case.name not in ("frozen_dynamic_top_p", "lserve", "nsa", "retro_infer", "sparq")
]


def cut(request: Request, prompt_tokens: int) -> Request:
    """The same request with a shorter prompt."""
    assert request.prompt_queries is not None
    first = request.prompt_tokens - prompt_tokens
    return replace(
        request,
        keys=request.keys[:, first:],
        values=request.values[:, first:],
        prompt_queries=request.prompt_queries[:, first:],
        prompt_tokens=prompt_tokens,
    )


def assert_equal(one: list[Outcome], two: list[Outcome]) -> None:
    """Bit for bit."""
    for left, right in zip(one, two, strict=True):
        assert left.pages == right.pages
        assert np.array_equal(left.out, right.out)


@pytest.mark.parametrize("case", WHOLE_PAGES, ids=str)
def test_a_prompt_shorter_than_a_page_is_read_whole(case: Case) -> None:
    graph = trace_flow(case.build(), case.geometry)
    request = cut(request_of(case, 3), prompt_tokens=1)
    outcomes = run_session(graph, case, request)
    for head, decode in enumerate(decodes_of(case, request)):
        for step, outcome in enumerate(outcomes):
            assert outcome.pages[head] == [0]
            assert np.isfinite(outcome.out).all()
            if case.name not in ("nsa", "sparq"):  # these mix in what is not attention to pages
                dense, _ = attend(decode.moment(step), [0])
                np.testing.assert_allclose(outcome.out[head], dense, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ANY_PAGE, ids=str)
def test_pages_of_one_token_follow_the_rule(case: Case) -> None:
    single = replace(case, block_size=1, prompt_pages=30, budget=6)
    graph = trace_flow(single.build(), single.geometry)
    request = request_of(single, 7)
    assert request.prompt_queries is not None
    outcomes = run_session(graph, single, request)
    wanted = single.paper(decodes_of(single, request), request.prompt_queries)
    for head, steps in enumerate(wanted):
        for outcome, step in zip(outcomes, steps, strict=True):
            assert outcome.pages[head] == sorted({page for pages in step.pages for page in pages})


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_a_budget_for_all_pages_reads_all(case: Case) -> None:
    graph = trace_flow(case.build(), case.geometry)
    request = replace(request_of(case, 4), budget=1000)
    for outcome in run_session(graph, case, request):
        for pages in outcome.pages:
            assert pages == list(range(max(pages) + 1))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_found_prefix_and_a_prompt_in_pieces_change_nothing(case: Case) -> None:
    graph = trace_flow(case.build(), case.geometry)
    request = request_of(case, 5)
    session = open_session(graph, case, request, requests=3)
    cold = run_request(session, graph, request, "cold")
    assert_equal(cold, run_request(session, graph, request, "warm"))
    apart = open_session(graph, case, request)
    assert_equal(cold, run_request(apart, graph, request, "apart", piece=7))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_passes_change_rounding_at_most(case: Case) -> None:
    graph = trace_flow(case.build(), case.geometry)
    request = request_of(case, 6)
    traced = run_session(graph, case, request)
    exact = optimize_graph(graph, [item for item in PASSES if item.exact])
    assert_equal(traced, run_session(exact, case, request))
    for one, two in zip(traced, run_session(optimize_graph(graph), case, request), strict=True):
        assert one.pages == two.pages
        np.testing.assert_allclose(one.out, two.out, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_flows_with_weights_say_where_these_come_from(case: Case) -> None:
    given, drawn = case.build(), type(case.build())()
    if trace_flow(given, case.geometry).parameters:
        labels = [getattr(flow, "weights_label", "") for flow in (given, drawn)]
        assert labels[0] == "given"
        assert labels[1].startswith(("seeded random", "identity"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ready_flows_give_no_cause_for_warnings(case: Case) -> None:
    warnings = examine_flow(case.build(), case.geometry).warnings
    if case.name == "centered_block_sparse_attention":  # subtracts what ranking cannot see
        assert [warning.code for warning in warnings] == ["order-kept"]
    else:
        assert warnings == ()
