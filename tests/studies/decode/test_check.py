"""When the pages and outputs of a step on a machine count as those of the reference."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.flow import registry, trace_flow
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import PlanSpec, Reserved, parse_policy
from tilewright.machine import build_machine, parse_machine
from tilewright.studies.decode.check import is_near_tie, value_error
from tilewright.studies.decode.data import ReferenceStep, draw_requests, reference_step
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step

ENDS = Reserved(1, 1)
CONTEXTS = (120,)
PLAN = PlanSpec(budget=parse_policy("6"), reserved=ENDS)


@cache
def quest(name: str = "quest") -> Graph:
    sizes = Geometry.gqa(
        page_size=4,
        head_dim=16,
        query_heads=2,
        kv_dtype=DType.FLOAT16,
        query_dtype=DType.FLOAT16,
        field_dtype=DType.FLOAT16,
    )
    return optimize_graph(trace_flow(registry.get(name)(), sizes, name=name))


@cache
def both() -> tuple[StepTiming, ReferenceStep]:
    """A step with values, and the reference of it."""
    graph = quest()
    requests = draw_requests(graph, CONTEXTS, kv_heads=2, seed=3)
    expected = reference_step(graph, requests, PLAN)
    machine = build_machine(parse_machine("ahbm-small"))
    step = DecodeStep(
        machine=machine,
        graph=graph,
        contexts=CONTEXTS,
        kv_heads=2,
        plan=PLAN,
        values=expected.values,
    )
    return simulate_step(step, tells_stages=False), expected


def swapped(far_ulp: int) -> ReferenceStep:
    """The reference as if it had taken another page in row 0, and the one that was left out scored
    so many ulp less.
    """
    _, expected = both()
    pages, scores = expected.pages[0], np.array(expected.scores[0])
    inside = pages[(pages > 0) & (pages < len(scores) - 1)]
    lost = inside[np.argmin(scores[inside])]
    taken = next(page for page in range(1, len(scores) - 1) if page not in pages)
    scores[taken] = scores[lost] + far_ulp * np.spacing(np.abs(scores[lost]))
    other = np.sort(np.append(pages[pages != lost], taken))
    return replace(
        expected,
        pages=(other, *expected.pages[1:]),
        scores=(scores, *expected.scores[1:]),
        output=np.concatenate([np.zeros_like(expected.output[:1]), expected.output[1:]]),
    )


def test_a_step_on_the_machine_is_right() -> None:
    timing, expected = both()
    assert value_error(quest(), timing, expected, ENDS) < 2e-3


def test_a_near_tie_is_right_and_is_compared_over_the_pages_that_were_read() -> None:
    assert value_error(quest(), both()[0], swapped(4), ENDS) < 2e-3


def test_a_page_that_scores_less_is_wrong() -> None:
    assert value_error(quest(), both()[0], swapped(200), ENDS) == float("inf")


def test_a_wrong_output_of_a_near_tie_is_found() -> None:
    timing, _ = both()
    output = np.array(timing.result.output)
    output[0] *= 1.01
    wrong = replace(timing, result=replace(timing.result, output=output))
    assert value_error(quest(), wrong, swapped(1), ENDS) > 5e-3


@pytest.mark.parametrize("pages", [[0, 1, 4], [0, 1, 2, 3, 4]], ids=["fewer", "more"])
def test_another_number_of_pages_is_no_tie(pages: list[int]) -> None:
    scores = np.ones(5, dtype=np.float32)
    assert not is_near_tie(np.array(pages), np.array([0, 1, 2, 4]), scores, ENDS)


def test_pages_without_scores_have_no_ties() -> None:
    assert not is_near_tie(np.array([0, 1, 4]), np.array([0, 2, 4]), None, ENDS)


@given(st.lists(st.integers(-40, 40), min_size=6, max_size=30), st.integers(1, 4))
def test_whatever_order_of_equals_is_taken_is_a_tie(drawn: list[int], count: int) -> None:
    scores = np.array(drawn, dtype=np.float32)
    middle = np.arange(1, len(scores) - 1)
    first = middle[np.lexsort((middle, -scores[middle]))][:count]
    last = middle[np.lexsort((-middle, -scores[middle]))][:count]
    ends = np.array([0, len(scores) - 1])
    found, expected = (np.sort(np.concatenate([ends, each])) for each in (last, first))
    assert is_near_tie(found, expected, scores, ENDS)


@given(st.lists(st.integers(-40, 40), min_size=8, max_size=30, unique=True))
def test_a_page_below_the_last_that_is_in_is_never_a_tie(drawn: list[int]) -> None:
    scores = np.array(drawn, dtype=np.float32)
    order = 1 + np.argsort(-scores[1:-1], kind="stable")
    ends = np.array([0, len(scores) - 1])
    expected = np.sort(np.concatenate([ends, order[:2]]))
    found = np.sort(np.concatenate([ends, order[[0, 2]]]))
    assert not is_near_tie(found, expected, scores, ENDS)
