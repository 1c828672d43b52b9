"""State that goes from step to step: as the reference keeps it, over the ends of pages."""

from dataclasses import replace

import numpy as np
import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton.pair import Rows, geometry_of, graph_of, run_steps
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType
from tilewright.attention.planner import DefaultBudget

STATEFUL = ("h2o", "lserve", "rocketkv", "running_avg_block_sparse", "snapkv", "tova")
ROWS = Rows(tokens=(3, 46), budget=DefaultBudget(topk=3), kv_heads=2)
STEPS = 6  # more than a page


@pytest.mark.parametrize("name", STATEFUL)
def test_steps_select_attend_and_keep_as_the_reference_does(name: str) -> None:
    flow = registry.get(name)()
    size = 16 if name == "lserve" else 4  # whose logical pages have 16 tokens
    graph = graph_of(flow, geometry_of(flow.kind, DType.FLOAT32, page_size=size, width=32), name)
    rows = replace(ROWS, tokens=tuple(count * size // 4 for count in ROWS.tokens))
    for pair in run_steps(graph, rows, STEPS):
        assert pair.pages == pair.expected_pages
        assert pair.worst_error() < 1e-5
        for state, (expected, found) in pair.states.items():
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=state)
