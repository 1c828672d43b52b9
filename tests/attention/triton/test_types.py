"""Keys, values and queries in the types that memory holds."""

from dataclasses import replace

import numpy as np
import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton.pair import LARGE, Rows, geometry_of, graph_of, run_pair
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType, FlowKind
from tilewright.attention.planner import DefaultBudget

ROWS = Rows(tokens=(38,), budget=DefaultBudget(topk=3), kv_heads=1)
NARROW = (DType.FLOAT8_E4M3, DType.FLOAT8_E5M2)

BY_MEANS = {
    FlowKind.GQA: "block_sparse_attention",
    FlowKind.MLA: "rope_unaware_block_sparse_mla",
}
"""Flows whose summaries are floats, whatever keys are."""


@pytest.mark.parametrize("kind", list(FlowKind))
@pytest.mark.parametrize("dtype", NARROW)
def test_keys_and_values_of_one_byte_give_what_the_reference_gives(
    dtype: DType, kind: FlowKind
) -> None:
    sizes = replace(geometry_of(kind, DType.FLOAT16), kv_dtype=dtype, field_dtype=DType.FLOAT16)
    pair = run_pair(graph_of(registry.get(BY_MEANS[kind])(), sizes), ROWS, LARGE)
    assert pair.pages == pair.expected_pages
    assert pair.worst_error() < 2e-3
    for expected, found in pair.fields.values():
        assert np.array_equal(expected, found)


@pytest.mark.parametrize("dtype", NARROW)
def test_summaries_of_one_byte_are_those_of_the_reference(dtype: DType) -> None:
    sizes = replace(geometry_of(FlowKind.GQA, DType.FLOAT32), field_dtype=dtype)
    pair = run_pair(graph_of(registry.get("quest")(), sizes), ROWS, LARGE)
    assert pair.pages == pair.expected_pages
    for expected, found in pair.fields.values():
        assert np.array_equal(np.asarray(expected, np.float32), np.asarray(found, np.float32))
