"""Seeded data of a trial, and what a trial finds in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.attention.flow import trace_flow
from tilewright.attention.flows.centroid import BlockSparseAttention
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.studies.attention_trial import TrialSpec, run_trial
from tilewright.studies.decode.data import RequestData, draw_request

WIDTH, GROUP = 32, 3


def graph() -> Graph:
    float32 = DType.FLOAT32
    geometry = Geometry.gqa(
        page_size=8,
        head_dim=WIDTH,
        query_heads=GROUP,
        kv_dtype=float32,
        query_dtype=float32,
        field_dtype=float32,
    )
    return trace_flow(BlockSparseAttention(), geometry, name="block_sparse_attention")


def draw(seed: int, context: int) -> RequestData:
    return draw_request(
        graph(),
        np.random.default_rng(seed),
        context=context,
        steps=2,
        kv_heads=2,
        window=5,
    )


@settings(max_examples=settings().max_examples // 5)
@given(seed=st.integers(0, 2**32 - 1), context=st.integers(50, 400))
def test_a_needle_outweighs_all_other_keys_of_its_step_and_head(seed: int, context: int) -> None:
    data = draw(seed, context)
    taken = [(needle.head, needle.position) for needle in data.needles]
    for needle in data.needles:
        if taken.count((needle.head, needle.position)) > 1:
            continue  # a later needle was planted at the same place
        query = data.queries[context + needle.step - data.first_query, needle.head].mean(axis=0)
        keys = data.keys[: context + needle.step + 1, needle.head]
        weights = np.exp(query.astype(np.float64) @ keys.T * WIDTH**-0.5)
        assert weights[needle.position] > 0.5 * weights.sum()


def test_the_prompts_last_queries_are_there_and_no_more_than_the_prompt_has() -> None:
    data = draw(1, 60)
    assert (data.first_query, len(data.queries)) == (55, 7)
    assert (draw(1, 50).first_query, draw(1, 50).queries.shape[2:]) == (45, (GROUP, WIDTH))


@pytest.mark.parametrize("context", [1, 7, 8, 9])
def test_prompts_around_the_length_of_a_page_run(context: int) -> None:
    record = run_trial(graph(), TrialSpec(context=context, batch=1), progress=lambda _: None)
    assert record.rows.sparse == 0
    assert record.output_error_worst < 1e-5
    assert record.mass.worst == pytest.approx(1.0)


def test_more_pages_capture_more_mass_with_less_error() -> None:
    records = [
        run_trial(graph(), TrialSpec(context=400, batch=1, budget=budget), progress=lambda _: None)
        for budget in (3, 10, 30)
    ]
    masses = [record.mass.mean for record in records]
    errors = [record.output_error_mean for record in records]
    assert masses == sorted(masses)
    assert errors == sorted(errors, reverse=True)
