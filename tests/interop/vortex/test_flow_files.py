"""Flow files written for Vortex, loaded from text through the alias and executed unmodified."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.attention.flows.case import ByHead, Case, decodes_of, request_of
from tests.attention.flows.cases import CASES
from tests.attention.flows.executor import run_session
from tests.attention.oracle_flows.decode import Array
from tests.attention.oracle_ops.graph import run_graph
from tests.interop.vortex.known_flows import KNOWN_FLOWS
from tests.interop.vortex.own_flows import OWN_FLOWS
from tilewright.attention.flow import FlowBase, examine_flow, make_flow, trace_flow
from tilewright.attention.passes import optimize_graph
from tilewright.interop.vortex import load_flows

BY_NAME = {case.name: case for case in CASES}


def flow_of(tmp_path: Path, name: str, text: str) -> Callable[[], FlowBase]:
    file = tmp_path / f"{name}.py"
    file.write_text(text)
    flows = load_flows(file)
    return lambda: make_flow(name, flows[name])


def no_paper(_decodes: object, _queries: object) -> ByHead:
    return []


def assert_close(found: Array, wanted: Array) -> None:
    norm = np.linalg.norm(wanted, axis=-1, keepdims=True)
    assert (np.abs(found - wanted) <= 1e-5 * norm).all()


@pytest.mark.parametrize("name", KNOWN_FLOWS)
def test_a_published_flow_runs_as_its_rule_on_paper_says(name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    graph = trace_flow(flow_of(tmp_path, name, KNOWN_FLOWS[name])(), case.geometry, name=name)
    request = request_of(case, seed=3)
    assert request.prompt_queries is not None
    outcomes = run_session(graph, case, request)
    for head, steps in enumerate(case.paper(decodes_of(case, request), request.prompt_queries)):
        for outcome, wanted in zip(outcomes, steps, strict=True):
            assert [outcome.pages[head]] == wanted.pages
            assert_close(outcome.out[head], wanted.out)


@pytest.mark.parametrize("optimized", [False, True], ids=["traced", "optimized"])
@pytest.mark.parametrize("name", OWN_FLOWS)
def test_a_flow_of_ones_own_runs_as_the_definitions_of_its_ops_say(
    name: str, optimized: bool, tmp_path: Path
) -> None:
    case = Case(name, flow_of(tmp_path, name, OWN_FLOWS[name]), no_paper)
    graph = trace_flow(case.build(), case.geometry, name=name)
    request = request_of(case, seed=4)
    executed = run_session(optimize_graph(graph) if optimized else graph, case, request)
    for outcome, heads in zip(executed, run_graph(graph, request), strict=True):
        for head, wanted in enumerate(heads):
            assert [outcome.pages[head]] * len(wanted.pages) == list(wanted.pages)
            assert_close(outcome.out[head], wanted.out)


def test_there_are_at_least_ten_files_that_nobody_published() -> None:
    assert len(OWN_FLOWS) >= 10
    assert not OWN_FLOWS.keys() & KNOWN_FLOWS.keys()


@pytest.mark.parametrize("name", KNOWN_FLOWS)
def test_a_published_flow_has_no_warning_but_a_true_one(name: str, tmp_path: Path) -> None:
    build = flow_of(tmp_path, name, KNOWN_FLOWS[name])
    warnings = examine_flow(build(), BY_NAME[name].geometry).warnings
    centered = name == "centered_block_sparse_attention"  # subtracts one number from all pages
    assert [warning.code for warning in warnings] == (["order-kept"] if centered else [])


def test_a_file_leaves_neither_names_nor_modules_behind(tmp_path: Path) -> None:
    before = set(sys.modules)
    flow_of(tmp_path, "two_streams", OWN_FLOWS["two_streams"])
    assert not any(name.startswith("vortex_torch") for name in set(sys.modules) - before)
    again = flow_of(tmp_path, "two_streams", OWN_FLOWS["two_streams"])
    assert again().kind == "gqa"
