"""Requests of uneven lengths over cubes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.small import run_small
from tilewright.errors import BenchError
from tilewright.programs.builtin.decode_attention import deal_requests


@settings(max_examples=8, deadline=None)
@given(
    requests=st.integers(1, 7),
    max_length=st.integers(1, 70),
    kv_heads=st.integers(1, 6),
    cubes=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_any_batch_gives_attention(
    requests: int, max_length: int, kv_heads: int, cubes: int, seed: int
) -> None:
    sizes: dict[str, Any] = {
        "requests": requests,
        "min_length": 1,
        "max_length": max_length,
        "cubes": cubes,
    }
    outcome = run_small(
        "decode_attention", seed=seed, kv_heads=kv_heads, q_heads=2 * kv_heads, **sizes
    )
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@given(lengths=st.lists(st.integers(1, 1000), min_size=1, max_size=30), cubes=st.integers(1, 8))
def test_every_request_is_dealt_once_and_no_cube_is_far_above_the_mean(
    lengths: list[int], cubes: int
) -> None:
    batch = deal_requests(np.array(lengths), cubes)
    assert sorted(length for cube in batch.lengths for length in cube) == sorted(lengths)
    assert batch.capacity <= sum(lengths) / cubes + max(lengths)
    starts = batch.starts()
    assert starts.shape == (cubes, batch.num_slots + 1)
    np.testing.assert_array_equal(starts[:, -1], [sum(cube) for cube in batch.lengths])


def test_lengths_that_cannot_be_are_refused() -> None:
    with pytest.raises(BenchError, match="max_length=9, expected at least min_length=64"):
        run_small("decode_attention", max_length=9)
