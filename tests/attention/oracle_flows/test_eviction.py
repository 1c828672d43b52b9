"""Rules that forget for good, held to small cases."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.attention.oracle_flows import eviction, quest
from tests.attention.oracle_flows.sample import random_decode

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
def test_what_was_dropped_is_never_read_again(seed: int) -> None:
    decode = random_decode(seed, steps=6)
    queries = np.random.default_rng(seed + 1).normal(size=(4, 2, 8))
    for rule in (eviction.h2o, eviction.tova):
        found = rule(decode, queries)
        dead: set[int] = set()
        for result in found:
            assert not dead & set(result.pages)
            dead |= set(range(result.mass.shape[1])) - set(result.pages)


def test_the_mass_of_a_prompt_is_one_for_each_query_and_head() -> None:
    decode = random_decode(2)
    queries = np.random.default_rng(3).normal(size=(5, 2, 8))
    np.testing.assert_allclose(eviction.prompt_mass(decode, queries).sum(axis=1), 5.0)


def test_snapkv_keeps_its_choice_and_all_that_follows() -> None:
    decode = random_decode(4, steps=6)
    queries = np.random.default_rng(5).normal(size=(4, 2, 8))
    found = eviction.snapkv(decode, queries, keep=2, reach=0)
    kept = eviction.snapkv_pages(decode, queries, keep=2, reach=0)
    assert found[-1].pages == sorted({0, *kept, 6, 7})
    assert eviction.pooled(np.array([0.0, 3.0, 1.0, 0.0]), 1).tolist() == [3, 3, 3, 1]


def test_the_second_stage_reads_only_what_the_first_left() -> None:
    decode = random_decode(13, steps=5)
    queries = np.random.default_rng(14).normal(size=(4, 2, 8))
    kept = eviction.snapkv_pages(decode, queries, keep=3, reach=1)
    for result in eviction.rocketkv(decode, queries, keep=3, reach=1, score=quest.quest):
        assert set(result.pages) <= {0, *kept, 6, 7}
