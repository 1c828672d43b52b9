"""Attention of prompts of any length, over any cubes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.small import run_small
from tilewright.errors import BenchError
from tilewright.programs.attention import collect_tokens, deal_tokens
from tilewright.programs.builtin.flash_attention import QueryBlocks


@settings(max_examples=8, deadline=None)
@given(
    length=st.integers(1, 70),
    block=st.integers(9, 24),
    key_block=st.integers(9, 40),
    cubes=st.integers(1, 4),
    causal=st.booleans(),
)
def test_any_blocks_give_attention(
    length: int, block: int, key_block: int, cubes: int, causal: bool
) -> None:
    sizes: dict[str, Any] = {
        "length": length,
        "block": block,
        "key_block": key_block,
        "cubes": cubes,
    }
    outcome = run_small("flash_attention", causal=causal, **sizes)
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@given(length=st.integers(1, 200), size=st.integers(1, 40), cubes=st.integers(1, 5))
def test_queries_are_dealt_and_collected_without_loss(length: int, size: int, cubes: int) -> None:
    blocks = QueryBlocks(length, size, cubes)
    queries = np.arange(2 * 3 * length, dtype=np.int64).reshape(2, 3, length, 1)
    table = blocks.of_cubes()
    dealt = deal_tokens(queries, table, size)
    assert dealt.shape == (cubes, 2, blocks.num_tiles, 3, size, 1)
    np.testing.assert_array_equal(collect_tokens(dealt, table, length), queries)
    assert sorted(table.ravel()) == list(range(cubes * blocks.num_tiles))


def test_cubes_see_about_as_many_keys_under_a_causal_mask() -> None:
    blocks = QueryBlocks(length=1024, size=64, num_cubes=4).of_cubes()
    assert len({int(work) for work in (blocks + 1).sum(axis=1)}) == 1


def test_a_causal_mask_saves_time() -> None:
    sizes: dict[str, Any] = {"length": 128, "block": 32, "data": False}
    causal, full = (run_small("flash_attention", causal=mask, **sizes) for mask in (True, False))
    assert causal.latency_ps < full.latency_ps
    assert causal.bound.total_ps < full.bound.total_ps


def test_heads_that_make_no_groups_are_refused() -> None:
    with pytest.raises(BenchError, match="5 query heads for 2 KV heads"):
        run_small("flash_attention", q_heads=5)


def test_more_pes_than_kv_heads_leave_some_idle() -> None:
    outcome = run_small("flash_attention")  # 2 KV heads, 4 PEs a cube
    assert {pe.pe for pe in outcome.launches[0].pes} == {0, 1}
