import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.synthetic import drawn_case, replayed

SCORED = ["quest", "block_sparse_attention", "streaming_llm", "random", "oracle"]
FLOWS = [*SCORED, "snapkv"]
NUM_PAGES = 16


@pytest.mark.parametrize("flow", FLOWS)
def test_a_budget_of_every_page_loses_nothing_to_the_last_bit(flow: str) -> None:
    found = replayed(flow, budget=99)
    assert found.output_error == (0.0,) * 4
    assert found.mass == pytest.approx((1.0,) * 4)
    assert found.oracle_ratio == pytest.approx((1.0,) * 4)
    assert found.needle_hits == len(drawn_case().stream.needles) == 4 * 2 * 2
    assert found.num_bytes >= found.dense_bytes


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(FLOWS), st.integers(2, NUM_PAGES), st.integers(0, 3))
def test_no_rule_has_more_mass_than_the_oracle_of_equal_budget(
    flow: str, budget: int, seed: int
) -> None:
    found, best = replayed(flow, budget, seed), replayed("oracle", budget, seed)
    for mass, most in zip(found.mass, best.mass, strict=True):
        assert mass <= most + 1e-6
    assert all(0.0 < ratio <= 1.0 + 1e-9 for ratio in found.oracle_ratio)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SCORED), st.integers(2, NUM_PAGES - 1), st.integers(0, 3))
def test_a_larger_budget_never_has_less_mass(flow: str, budget: int, seed: int) -> None:
    smaller, larger = replayed(flow, budget, seed), replayed(flow, budget + 1, seed)
    for less, more in zip(smaller.mass, larger.mass, strict=True):
        assert less <= more + 1e-9


def test_a_window_stays_while_its_last_page_fills_and_chance_does_not() -> None:
    assert replayed("streaming_llm", 4).stability == (1.0,) * 3
    assert max(replayed("random", 4).stability) < 0.8


def test_mass_is_that_of_the_pages_of_a_window_and_best_that_of_the_largest() -> None:
    found, page_mass = replayed("streaming_llm", 4), drawn_case().stream.page_mass
    window = [0, NUM_PAGES - 3, NUM_PAGES - 2, NUM_PAGES - 1]
    for step in range(4):
        mass = page_mass[step][..., window].sum(axis=-1).mean()
        by_head = page_mass[step].mean(axis=2).reshape(-1, NUM_PAGES)
        best = np.mean([sum(sorted(head, reverse=True)[:4]) for head in by_head])
        assert found.mass[step] == pytest.approx(mass)
        assert found.oracle_ratio[step] == pytest.approx(mass / best)


def test_means_over_heads_and_over_steps_are_of_the_same_masses() -> None:
    found = replayed("quest", 4)
    assert np.mean(found.head_mass) == pytest.approx(np.mean(found.mass))
    assert len(found.head_mass) == 2 * 2 * 4


def test_bytes_are_those_of_pages_that_were_read() -> None:
    found = replayed("streaming_llm", 4)
    page_bytes = 2 * 8 * 64 * 4  # keys and values, tokens, head_dim, float32
    rows = 4 * 2 * 2  # steps, layers, KV heads
    assert found.num_bytes == rows * 4 * page_bytes
    assert found.dense_bytes == rows * NUM_PAGES * page_bytes
