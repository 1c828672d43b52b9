"""Vortex's flow files give the reference's pages and outputs in generated Triton kernels."""

import pytest

from tests.attention.triton.pair import LARGE, Rows, run_pair
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import DefaultBudget
from tilewright.validation.vortex.flows import FLOWS
from tilewright.validation.vortex.rules import load_graph

BY_ID = {name.split()[0]: flow for name, flow in FLOWS.items()}
ROWS = Rows(tokens=(60,), budget=DefaultBudget(topk=3), kv_heads=1)


@pytest.mark.parametrize("name", ["VX1", "VX2", "VX3", "VX7"])
def test_a_vortex_flow_selects_and_attends_as_the_reference_does(name: str) -> None:
    pair = run_pair(optimize_graph(load_graph(BY_ID[name])), ROWS, LARGE)
    assert pair.pages == pair.expected_pages
    assert pair.worst_error() < 1e-5
