"""Keys and values in floats of one byte on a machine: values, saturation, bytes and time."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attention.machine.pair import (
    exact_requests,
    geometry_of,
    graph_of,
    plan_of,
    run_pair,
    small_machine,
)
from tilewright.attention.flow import registry, trace_flow
from tilewright.attention.graph import DType, Geometry, Graph, dtypes_of
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import PlanSpec
from tilewright.studies.decode.check import value_error
from tilewright.studies.decode.data import reference_step
from tilewright.studies.decode.step import DecodeStep, simulate_step

CONTEXTS = (30, 64)
LARGEST = {DType.FLOAT8_E4M3: 448.0, DType.FLOAT8_E5M2: 57344.0}
TOLERANCE = 2e-2


def byte_graph(name: str, dtype: DType) -> Graph:
    flow = registry.get(name)()
    sizes = replace(geometry_of(flow.kind, DType.FLOAT32), **dtypes_of(dtype))
    return optimize_graph(trace_flow(flow, sizes, name=name))


@pytest.mark.parametrize("dtype", list(LARGEST))
@pytest.mark.parametrize("name", ["quest", "quest_mla", "block_sparse_attention"])
def test_values_are_those_of_the_reference(name: str, dtype: DType) -> None:
    pair = run_pair(byte_graph(name, dtype), CONTEXTS, plan_of(5))
    assert [found.tolist() for found in pair.timing.result.pages] == [
        found.tolist() for found in pair.expected.pages
    ]
    norm = np.linalg.norm(pair.expected.output, axis=-1)
    error = np.linalg.norm(pair.output - pair.expected.output, axis=-1)
    assert float(np.max(error / norm)) < TOLERANCE


@pytest.mark.parametrize("dtype", list(LARGEST))
def test_a_token_beyond_the_largest_number_is_kept_as_it(dtype: DType) -> None:
    graph = byte_graph("quest", dtype)
    requests = exact_requests(graph, CONTEXTS)
    for data in requests:  # the new token and one of the prompt
        assert data.values is not None
        data.values[-1, :, 0], data.values[3, :, 1] = 3 * LARGEST[dtype], -3 * LARGEST[dtype]
        data.keys[-1] = 0.0  # which query heads look at it is another matter
    plan = plan_of(99)
    expected = reference_step(graph, requests, plan)
    assert float(expected.values.new_tokens["v"][0, 0, 0]) == LARGEST[dtype]
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=CONTEXTS,
        kv_heads=2,
        plan=plan,
        values=expected.values,
    )
    timing = simulate_step(step, tells_stages=False)
    assert value_error(graph, timing, expected, plan.reserved) < TOLERANCE


def dense_step(dtype: DType) -> tuple[int, int]:
    sizes = Geometry.gqa(page_size=16, head_dim=128, query_heads=4, **dtypes_of(dtype))
    graph = optimize_graph(trace_flow(registry.get("quest")(), sizes, name="quest"))
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=(8192,),
        kv_heads=1,
        plan=PlanSpec(),
        is_dense=True,
    )
    timing = simulate_step(step, tells_stages=False)
    return timing.latency_ps, timing.num_bytes


def test_half_the_bytes_take_about_half_the_time() -> None:
    wide_ps, wide_bytes = dense_step(DType.FLOAT16)
    narrow_ps, narrow_bytes = dense_step(DType.FLOAT8_E4M3)
    assert 0.5 <= narrow_bytes / wide_bytes < 0.51
    assert 0.5 <= narrow_ps / wide_ps < 0.6


def test_queries_of_one_byte_are_multiplied_as_they_are() -> None:
    pair = run_pair(graph_of("quest", DType.FLOAT8_E4M3), CONTEXTS, plan_of(5))
    norm = np.linalg.norm(pair.expected.output, axis=-1)
    error = np.linalg.norm(pair.output - pair.expected.output, axis=-1)
    assert float(np.max(error / norm)) < TOLERANCE
