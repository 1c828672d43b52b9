import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.synthetic import SPEC, drawn_case, replayed


def test_masses_of_pages_are_the_softmax_of_each_query_over_what_it_sees() -> None:
    stream = drawn_case().stream
    for step, layer, head, query in ((0, 0, 0, 0), (2, 1, 0, 3), (3, 1, 1, 1)):
        seen = np.concatenate(
            [stream.context.keys(layer)[:, head], stream.keys[: step + 1, layer, head]]
        ).astype(np.float64)
        logits = seen @ stream.queries[step, layer, head, query] * stream.scale
        weights = np.exp(logits - logits.max())
        expected = np.zeros(stream.num_pages)
        np.add.at(expected, np.arange(len(seen)) // SPEC.page_size, weights / weights.sum())
        found = stream.page_mass[step, layer, head, query]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_dense_outputs_are_the_values_by_their_masses() -> None:
    stream = drawn_case().stream
    assert stream.values is not None
    step, layer, head, query = 3, 1, 0, 2
    keys, values = (
        np.concatenate([before[:, head], now[: step + 1, layer, head]]).astype(np.float64)
        for before, now in (
            (stream.context.keys(layer), stream.keys),
            (np.asarray(stream.context.values(layer)), stream.values),
        )
    )
    logits = keys @ stream.queries[step, layer, head, query] * stream.scale
    weights = np.exp(logits - logits.max())
    expected = weights @ values / weights.sum()
    np.testing.assert_allclose(
        stream.outputs[step, layer, head, query], expected, rtol=1e-4, atol=1e-5
    )


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
