"""The writings of the rules on paper, held to small cases and to the laws that they promise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attention.oracle_flows import (
    branches,
    centroid,
    channels,
    compressed,
    ends,
    latent,
    learned,
    pruned,
    quest,
    stateful,
)
from tests.attention.oracle_flows.decode import (
    Decode,
    attend,
    best,
    choose,
    run_scores,
    softmax,
)
from tests.attention.oracle_flows.sample import decode_of, random_decode

SEEDS = st.integers(0, 2**32 - 1)


def small_moment() -> Decode:
    """Pages (1, 3), (5, -5), (2, 2) and an unfinished one; two heads of one channel."""
    keys = np.array([[1.0], [3.0], [5.0], [-5.0], [2.0], [2.0], [0.0]])
    return decode_of(keys, np.array([[[1.0], [-2.0]]]), block_size=2)


def test_a_step_sees_its_own_token_and_counts_its_pages() -> None:
    moment = small_moment().moment(0)
    assert (len(moment.keys), moment.num_pages, moment.num_finished) == (7, 4, 3)
    assert moment.middle == slice(1, 3)


def test_the_mean_rule_multiplies_means() -> None:
    assert centroid.block_sparse_attention(small_moment().moment(0)).tolist() == [-1, 0, -1]


def test_the_bound_takes_the_better_end_of_each_head() -> None:
    assert quest.quest(small_moment().moment(0)).tolist() == [3, 10, 2]
    assert quest.quest_group_sum(small_moment().moment(0)).tolist() == [3 - 2, 5 + 10, 2 - 4]
    assert quest.quest_mean_query(small_moment().moment(0)).tolist() == [-0.5, 2.5, -1]


def test_centering_and_gating_by_values() -> None:
    moment = small_moment().moment(0)
    assert centroid.centered_block_sparse_attention(moment).tolist() == [-0.5, 0.5, -0.5]
    assert centroid.venergy_gated_centroid(moment).tolist() == [-2, 0, -2]


def test_the_largest_share_of_the_group_wins() -> None:
    scores = centroid.gqa_block_sparse_attention(small_moment().moment(0))
    share = 1 / (1 + math.exp(-0.18))  # head 0 sees 0 and 0.18, head 1 sees 0 and -0.36
    other = 1 / (1 + math.exp(-0.36))
    assert scores.tolist() == pytest.approx([0, max(1 - share, other), max(share, 1 - other)])


@given(SEEDS)
def test_the_bound_is_never_below_a_true_dot_product(seed: int) -> None:
    moment = random_decode(seed).moment(0)
    pages = moment.finished(moment.keys)
    true = np.einsum("gd,ptd->pgt", moment.q, pages).max(axis=2)
    assert (quest.bounds(moment.q, pages) >= true - 1e-12).all()


@given(SEEDS)
def test_no_rule_holds_more_mass_than_the_true_one(seed: int) -> None:
    decode = random_decode(seed)
    moment = decode.moment(0)
    pages = choose(moment, ends.oracle(moment))
    mass = moment.by_page(np.exp(moment.logits) / np.exp(moment.logits).sum(axis=1, keepdims=True))
    for rule in (quest.quest, centroid.block_sparse_attention, ends.streaming_llm):
        other = choose(moment, rule(moment))
        assert mass[:, pages].mean(axis=0).sum() >= mass[:, other].mean(axis=0).sum() - 1e-12


@given(SEEDS)
def test_half_and_half_ranks_like_the_whole_logit(seed: int) -> None:
    moment = random_decode(seed).moment(0)
    aware = latent.rope_aware_block_sparse_mla(moment)
    half = latent.rope_weighted_block_sparse_mla(moment, kv_lora_rank=6, rope_weight=0.5)
    np.testing.assert_allclose(2 * half, aware, rtol=1e-9, atol=1e-12)


def test_a_sub_block_of_the_whole_page_is_the_page() -> None:
    moment = random_decode(5).moment(0)
    np.testing.assert_allclose(quest.lserve_sparse_attention(moment, part=4), quest.quest(moment))
    np.testing.assert_allclose(
        centroid.lserve_centroid_sparse_attention(moment, part=4),
        centroid.block_sparse_attention(moment),
    )


def test_equal_scores_go_to_the_lower_position() -> None:
    assert best(np.array([1.0, 2.0, 2.0, 2.0]), 2) == [1, 2]


def test_a_budget_for_all_pages_is_dense_attention() -> None:
    decode = random_decode(3)
    moment = decode.moment(2)
    out, mass = attend(moment, list(range(moment.num_pages)))
    weights = np.exp(moment.logits) / np.exp(moment.logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out, weights @ moment.values)
    np.testing.assert_allclose(mass.sum(axis=1), 1.0)


def test_the_running_average_forgets_by_halves() -> None:
    decode = decode_of(np.ones((9, 1)), np.array([[[1.0]], [[0.0]], [[0.0]]]), block_size=2)
    found = stateful.running_avg_block_sparse(decode)
    assert found[0].scores.tolist() == [1, 1, 1]
    assert found[1].scores.tolist() == [0.5, 0.5, 0.5, 0]  # its own token finishes a page
    assert found[2].scores.tolist() == [0.25, 0.25, 0.25, 0]


def test_a_reused_choice_changes_only_when_it_is_due() -> None:
    decode = random_decode(11, steps=6)
    plain, reused = (
        run_scores(decode, quest.quest),
        stateful.reused_selection(decode, quest.quest, 3),
    )
    for step in (0, 3):
        assert reused[step].pages == plain[step].pages
    middles = [[page for page in found.pages if 0 < page < 6] for found in reused]
    assert middles[0] == middles[1] == middles[2]


def test_windows_overlap_their_pages() -> None:
    shared = compressed.overlap(block=4, num_blocks=2, width=2, stride=1, count=7)
    assert shared.tolist() == [[2, 2, 2, 1, 0, 0, 0], [0, 0, 0, 1, 2, 2, 2]]


def test_one_window_a_page_makes_infllm_a_page_softmax() -> None:
    moment = random_decode(9).moment(0)
    logits = moment.q @ centroid.centroids(moment).T / math.sqrt(8)
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = compressed.infllm_v2(moment, width=4, stride=4)
    np.testing.assert_allclose(found, weights.sum(axis=0))


def test_a_compressor_flattens_then_bends_then_projects() -> None:
    compressor = compressed.Compressor(
        first=np.array([[1.0, 10.0]]), bias=np.array([-21.0]), second=np.array([[3.0]])
    )
    tokens = np.array([[[1.0], [2.0]], [[2.0], [2.0]]])  # 21 - 21 = 0 and 22 - 21 = 1
    assert compressor(tokens).reshape(-1).tolist() == pytest.approx([0, 3 / (1 + math.exp(-1))])


def test_the_lightning_index_drops_negative_products() -> None:
    moment = small_moment().moment(0)
    query_weight = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # index heads copy the two heads: 1, -2
    head_weight = np.array([[10.0, 0.0], [0.0, -1.0]])  # weights 10 and 2
    found = learned.dsa(moment, query_weight, head_weight, np.array([[1.0]]))
    assert found.tolist() == [30, max(50, 2 * 10), 20]


def test_a_gate_sees_max_min_and_mean() -> None:
    moment = small_moment().moment(0)
    key_weight = np.array([[1.0, 10.0, 100.0]])
    found = learned.seer_attention(moment, np.array([[1.0, 0.0]]), key_weight)
    assert found.tolist() == [3 + 10 + 200, 5 - 50, 2 + 20 + 200]


def test_the_largest_channels_belong_to_the_group() -> None:
    keys = np.zeros((4, 3))
    decode = decode_of(keys, np.array([[[1.0, -2.0, 0.0], [0.0, 0.0, 2.0]]]), block_size=2)
    assert channels.largest_channels(decode.moment(0), 2) == [1, 2]


def test_the_smallest_set_reaches_its_share() -> None:
    mass = np.array([0.1, 0.4, 0.3, 0.2])
    assert pruned.smallest_set(mass, 0.4) == [1]
    assert pruned.smallest_set(mass, 0.69) == [1, 2]
    assert pruned.smallest_set(mass, 1.0) == [0, 1, 2, 3]


def test_four_bits_keep_the_ends_and_err_by_half_a_step() -> None:
    keys = np.random.default_rng(1).normal(size=(5, 8))
    rounded = pruned.four_bit(keys)
    span = np.ptp(keys, axis=1, keepdims=True)
    np.testing.assert_allclose(rounded.max(axis=1), keys.max(axis=1))
    assert (np.abs(rounded - keys) <= span / 30 + 1e-12).all()


def test_farthest_points_find_the_clumps() -> None:
    keys = np.array([[0.0], [0.1], [10.0], [10.2], [-5.0], [-5.2]])
    means, counts = pruned.lloyd(keys, pruned.farthest_points(keys, 3))
    assert sorted(means.reshape(-1).tolist()) == pytest.approx([-5.1, 0.05, 10.1])
    assert counts.tolist() == [2, 2, 2]


def test_chance_depends_on_everything_that_names_a_choice() -> None:
    decode = random_decode(1)
    one, two = ends.random(decode.moment(0)), ends.random(decode.moment(1))
    assert len({*one.tolist()}) == len(one)
    assert not np.array_equal(one, two)
    assert not np.array_equal(one, ends.random(decode.moment(0), seed=1))
    assert not np.array_equal(one, ends.random(decode.moment(0), layer=1))
    assert ends.mixed(1) == 0x514E28B7  # the published finalizer of murmur3


def test_heads_with_one_query_share_what_moba_chooses() -> None:
    decode = random_decode(6)
    queries = np.repeat(decode.queries[:, :1], 2, axis=1)
    same = Decode(decode.keys, decode.values, queries, decode.prompt_tokens, 4, budget=2)
    pages, out = branches.moba(same.moment(0))
    assert pages[0] == pages[1] == run_scores(same, centroid.block_sparse_attention)[0].pages
    np.testing.assert_allclose(out, attend(same.moment(0), pages[0])[0])


def test_pages_of_equal_keys_are_estimated_without_error() -> None:
    rng = np.random.default_rng(8)
    keys = np.repeat(rng.normal(size=(6, 3)), 4, axis=0)
    decode = Decode(keys, rng.normal(size=(24, 3)), rng.normal(size=(1, 2, 3)), 23, 4, budget=1)
    moment = decode.moment(0)
    pages, out = branches.retro_infer(moment)
    assert len(pages) == 3
    np.testing.assert_allclose(out, attend(moment, list(range(6)))[0])


def test_a_budget_keeps_the_largest_of_a_share() -> None:
    decode = random_decode(10, pages=9)
    rule = pruned.frozen_dynamic_top_p
    free = rule(replace(decode, budget=9).moment(0), share=0.99, count=2, temperature=1.0)
    held = rule(decode.moment(0), share=0.99, count=2, temperature=1.0)
    assert set(held) < set(free)
    assert len(held) == 2 + decode.budget


def test_odd_heads_stream() -> None:
    plain = random_decode(12)
    odd = Decode(plain.keys, plain.values, plain.queries, 24, 4, budget=2, head=1)
    found = stateful.lserve(odd, quest.quest, every=4, window_pages=2)
    assert [result.pages for result in found] == [[0, 5, 6]] * 3


def test_all_channels_make_the_estimate_of_sparq_exact() -> None:
    moment = random_decode(15).moment(0)
    pages, out = branches.sparq(moment, count=8)
    assert pages == choose(moment, ends.oracle(moment))
    mass = moment.by_page(softmax(moment.logits))[:, pages].sum(axis=1, keepdims=True)
    mean = moment.values[: moment.num_finished * 4].mean(axis=0)
    np.testing.assert_allclose(out, mass * attend(moment, pages)[0] + (1 - mass) * mean)
