"""Vortex's flow files give the reference's pages and outputs on the simulated machine."""

import pytest

from tests.attention.machine.pair import plan_of, run_pair
from tilewright.attention.passes import optimize_graph
from tilewright.errors import CodegenError
from tilewright.validation.vortex.flows import FLOWS
from tilewright.validation.vortex.rules import load_graph

STATELESS = ("VX1", "VX3", "VX4", "VX5", "VX7", "VX8")
BY_ID = {name.split()[0]: flow for name, flow in FLOWS.items()}


@pytest.mark.parametrize("name", STATELESS)
def test_a_vortex_flow_selects_and_attends_as_the_reference_does(name: str) -> None:
    graph = optimize_graph(load_graph(BY_ID[name]))
    run_pair(graph, (101,), plan_of(5)).check()


def test_a_request_cache_is_refused_by_name() -> None:
    graph = optimize_graph(load_graph(BY_ID["VX6"]))
    with pytest.raises(CodegenError, match="found a request cache"):
        run_pair(graph, (101,), plan_of(5))
