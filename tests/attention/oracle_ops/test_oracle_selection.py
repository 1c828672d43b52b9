"""The definitions of selection, attention and state against cases worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attention.oracle_ops import attention
from tests.attention.oracle_ops.rounding import round_to
from tests.attention.oracle_ops.row import Array, OracleRow
from tests.attention.oracle_ops.selection import pages_of
from tests.attention.oracle_ops.state import run_state
from tests.attention.oracle_ops.table import ORACLES

ROW = OracleRow(num_pages=6, block_size=4, last_page_tokens=3, budget=2)


def column(*values: float) -> Array:
    return np.array(values, dtype=np.float64).reshape(-1, 1, 1)


def chosen(name: str, row: OracleRow, scores: Array, **attributes: object) -> list[int]:
    pages = pages_of(row, ORACLES[name](row, scores, **attributes))
    return [int(page) for page in pages]


def test_the_best_of_the_middle_join_the_reserved_pages() -> None:
    assert chosen("TopK", ROW, column(99, 1, 5, 2, 4, 99)) == [0, 2, 4, 5]
    assert chosen("TopK", ROW, column(99, 1, 5, 2, 4, 99), k=1) == [0, 2, 5]


def test_equal_scores_go_to_the_lower_position() -> None:
    assert chosen("TopK", ROW, column(0, 1, 1, 1, 1, 0)) == [0, 1, 2, 5]


def test_nan_loses_against_any_number() -> None:
    assert chosen("TopK", ROW, column(0, math.nan, -9, math.nan, -8, 0)) == [0, 2, 4, 5]


def test_a_budget_beyond_the_middle_takes_all_of_it() -> None:
    row = OracleRow(num_pages=3, budget=7)
    assert chosen("TopK", row, column(0, 0, 0)) == [0, 1, 2]


def test_a_row_shorter_than_its_reserved_pages_is_read_whole() -> None:
    row = OracleRow(num_pages=2, first_reserved=2, last_reserved=2)
    assert chosen("TopK", row, column(0, 0)) == [0, 1]


def test_heads_choose_for_themselves() -> None:
    scores = np.concatenate([column(0, 1, 2, 3, 4, 0), column(0, 4, 3, 2, 1, 0)], axis=2)
    found = ORACLES["TopK"](ROW, scores, per_head=True)
    assert pages_of(ROW, found, head=0).tolist() == [0, 3, 4, 5]
    assert pages_of(ROW, found, head=1).tolist() == [0, 1, 2, 5]


def test_the_tokens_of_a_selection_include_the_reserved_ones() -> None:
    found = ORACLES["TopK"](ROW, column(0, 1, 5, 2, 4, 0), k=1)
    assert ORACLES["SelectedTokens"](ROW, found).item() == 4 + 4 + 3
    assert ORACLES["SelectedTokens"](ROW, np.zeros((6, 1, 1), dtype=bool)).item() == 4 + 3


def test_streams_join_and_meet() -> None:
    one = ORACLES["TopK"](ROW, column(0, 4, 3, 2, 1, 0))
    two = ORACLES["TopK"](ROW, column(0, 1, 4, 3, 2, 0))
    assert pages_of(ROW, ORACLES["Union"](ROW, one, two, one)).tolist() == [0, 1, 2, 3, 5]
    assert pages_of(ROW, ORACLES["Intersection"](ROW, one, two)).tolist() == [0, 2, 5]
    assert pages_of(ROW, ORACLES["Complement"](ROW, one)).tolist() == [0, 3, 4, 5]


def test_top_p_stops_as_soon_as_the_share_is_reached() -> None:
    score = column(9, 0.5, 0.25, 0.125, 0.125, 9)
    assert chosen("TopP", ROW, score, p=0.5) == [0, 1, 5]
    assert chosen("TopP", ROW, score, p=0.51) == [0, 1, 2, 5]
    assert chosen("TopP", ROW, score, p=1.0) == [0, 1, 2, 3, 4, 5]
    assert chosen("TopP", ROW, score, p=0.1, min_pages=2) == [0, 1, 2, 5]
    assert chosen("TopP", ROW, score, p=1.0, max_pages=1) == [0, 1, 5]


def test_top_p_over_all_pages_counts_the_reserved_ones_first() -> None:
    score = column(5, 2, 1, 1, 1, 0)
    assert chosen("TopP", ROW, score, p=0.5, span="all") == [0, 5]
    assert chosen("TopP", ROW, score, p=0.7, span="all") == [0, 1, 5]


def test_no_weight_at_all_takes_the_least_number() -> None:
    score = column(9, -1, math.nan, 0, -2, 9)
    assert chosen("TopP", ROW, score, p=0.5) == [0, 5]
    assert chosen("TopP", ROW, score, p=0.5, min_pages=1) == [0, 1, 5]


def test_a_threshold_takes_what_reaches_it() -> None:
    score = column(0, 1, 2, 3, math.nan, 0)
    assert chosen("Threshold", ROW, score, value=2.0) == [0, 2, 3, 5]
    assert chosen("Threshold", ROW, score, value=2.0, max_pages=1) == [0, 3, 5]
    assert chosen("Threshold", ROW, score, value=9.0, min_pages=1) == [0, 3, 5]
    assert chosen("Threshold", ROW, score, value=-math.inf) == [0, 1, 2, 3, 4, 5]


def test_the_mass_of_new_pages_is_zero() -> None:
    row = OracleRow(num_pages=3, query_heads=1)
    found = ORACLES["AttentionMass"](row, np.array([[0.75], [0.25]]))
    assert found.reshape(-1).tolist() == [0.75, 0.25, 0]


def test_the_last_queries_of_a_prompt_see_only_what_was_before() -> None:
    row = OracleRow(num_pages=2, block_size=2, last_page_tokens=1)
    queries, keys = np.zeros((3, 1, 1)), np.zeros((3, 1))
    found = ORACLES["PromptMass"](row, queries, keys, window=2)
    assert found.reshape(-1).tolist() == pytest.approx([1 + 2 / 3, 1 / 3])


def test_attention_over_two_keys_weighs_them_by_their_logits() -> None:
    row = OracleRow(num_pages=2, block_size=1, last_page_tokens=1)
    query = np.array([[math.log(3.0)]])
    keys, values = np.array([[1.0], [0.0]]), np.array([[8.0], [4.0]])
    found = attention.dense_attention(row, query, keys, values, scale=1.0)
    assert found.out[0, 0] == pytest.approx(7.0)
    assert found.log_sum[0] == pytest.approx(math.log(4.0))
    assert found.mass[:, 0] == pytest.approx([0.75, 0.25])


def test_the_unwritten_tail_of_the_last_page_is_never_read() -> None:
    row = OracleRow(num_pages=2, block_size=2, last_page_tokens=1)
    keys, values = np.zeros((4, 1)), np.array([[1.0], [1.0], [4.0], [math.nan]])
    found = attention.dense_attention(row, np.ones((1, 1)), keys, values)
    assert found.out[0, 0] == pytest.approx(2.0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_parts_merge_into_the_whole(seed: int, split: int) -> None:
    rng = np.random.default_rng(seed)
    row = OracleRow(num_pages=4, block_size=2, last_page_tokens=1)
    query, keys, values = rng.normal(size=(2, 3)), rng.normal(size=(8, 3)), rng.normal(size=(8, 5))
    pages = [np.arange(split), np.arange(split, 4)]
    parts = [attention.sparse_attention(row, query, keys, values, part) for part in pages]
    whole = attention.dense_attention(row, query, keys, values)
    out, log_sum = attention.merge([(part.out, part.log_sum) for part in parts])
    np.testing.assert_allclose(out, whole.out, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(log_sum, whole.log_sum, rtol=1e-12)


def test_absorbed_mla_reads_values_from_the_front_of_the_latent() -> None:
    row = OracleRow(num_pages=1, block_size=2, last_page_tokens=2)
    latent = np.array([[1.0, 5.0], [3.0, 5.0]])
    query = np.array([[0.0, 1.0]])  # sees the rope channel only: equal weights
    pages = np.array([0])
    found = attention.mla_attention(row, query, latent, pages, kv_lora_rank=1, scale=1.0)
    assert found.out.tolist() == [[2.0]]


def test_a_zone_of_equal_keys_is_estimated_exactly() -> None:
    rng = np.random.default_rng(7)
    row = OracleRow(num_pages=3, block_size=4, last_page_tokens=4)
    keys, values = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    keys[4:8] = keys[4]
    query = rng.normal(size=(2, 3))
    estimated = attention.zone_attention(
        row,
        query,
        keys,
        values,
        np.array([0, 2]),
        counts=np.full((3, 1, 1), 4.0),
        mean_keys=keys.reshape(3, 4, 3).mean(axis=1, keepdims=True),
        value_sums=values.reshape(3, 4, 2).sum(axis=1, keepdims=True),
    )
    exact = attention.dense_attention(row, query, keys, values).out
    np.testing.assert_allclose(estimated, exact, rtol=1e-12)


def test_a_page_joins_the_recurrence_with_the_initial_value() -> None:
    """r_t = 0.5 r_(t-1) + 1: 1, 1.5, 1.75 for the first page; the second begins one step later."""
    history = run_state([1, 2, 2], np.zeros((1, 1)), lambda _, before: 0.5 * before + 1.0)
    assert [after.reshape(-1).tolist() for _, after in history] == [[1], [1.5, 1], [1.75, 1.5]]
    assert [before.reshape(-1).tolist() for before, _ in history] == [[0], [1, 0], [1.5, 1]]


@pytest.mark.parametrize(
    ("dtype", "value", "rounded"),
    [
        ("bfloat16", 1.0 + 2**-8, 1.0),  # a tie goes to the even neighbour
        ("bfloat16", 1.0 + 3 * 2**-8, 1.0 + 2 * 2**-7),
        ("float16", 2049.0, 2048.0),
        ("float16", 1e6, math.inf),
        ("float8_e4m3", 1000.0, 448.0),
        ("float8_e4m3", 2.0**-10, 0.0),
        ("float8_e5m2", -1e9, -57344.0),
        ("float32", 1.0 + 2**-25, 1.0),
    ],
)
def test_a_narrow_format_takes_the_nearest_number(dtype: str, value: float, rounded: float) -> None:
    assert round_to(dtype, np.array([value])).tolist() == [rounded]


@given(st.floats(width=32, allow_nan=False))
def test_float16_is_rounded_as_numpy_does(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = float(np.float16(np.float64(value)))
    assert round_to("float16", np.array([value]))[0] == expected
