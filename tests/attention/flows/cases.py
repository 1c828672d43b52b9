"""Every ready flow beside its rule on paper, at sizes that a loop can do."""

from functools import partial

import numpy as np

from tests.attention.flows.case import (
    ByHead,
    Case,
    Expected,
    at_moments,
    by_head,
    reading,
    scored,
)
from tests.attention.flows.cases_mla import MLA
from tests.attention.flows.table import (
    drawn,
    nsa_sizes,
    nsa_weights,
    seer_sizes,
)
from tests.attention.oracle_flows import (
    branches,
    centroid,
    channels,
    compressed,
    ends,
    eviction,
    learned,
    pruned,
    quest,
    stateful,
)
from tests.attention.oracle_flows.decode import Array, Decode, Moment, attend, choose
from tilewright.attention import flows

LABELS = (1, 4, 5, 11)
NSA, SEER = drawn(nsa_sizes(2)), drawn(seer_sizes())


def quest_mean_query(decodes: list[Decode], _: Array) -> ByHead:
    """Bounds are added over KV heads, so all heads choose the same pages."""
    out: ByHead = [[] for _ in decodes]
    for step in range(len(decodes[0].queries)):
        moments = [decode.moment(step) for decode in decodes]
        total = np.sum([quest.quest_mean_query(moment) for moment in moments], axis=0)
        for head, moment in enumerate(moments):
            pages = choose(moment, total)
            out[head].append(Expected([pages], attend(moment, pages)[0]))
    return out


def nsa(moment: Moment) -> tuple[list[int], Array]:
    """Its branches together read the chosen pages and the window."""
    pages, out = branches.nsa(moment, nsa_weights(NSA, quarter=2), window_pages=2)
    return sorted({*pages, *range(moment.num_pages - 2, moment.num_pages)}), out


GQA = (
    Case(
        "block_sparse_attention",
        flows.BlockSparseAttention,
        scored(centroid.block_sparse_attention),
    ),
    Case(
        "gqa_block_sparse_attention",
        flows.GQABlockSparseAttention,
        scored(centroid.gqa_block_sparse_attention),
    ),
    Case("gqa_quest_sparse_attention", flows.GQAQuestSparseAttention, scored(quest.quest)),
    Case(
        "lserve_sparse_attention",
        flows.LServeSparseAttention,
        scored(quest.lserve_sparse_attention),
        block_size=32,
        prompt_pages=7,
    ),
    Case(
        "lserve_centroid_sparse_attention",
        flows.LServeCentroidSparseAttention,
        scored(centroid.lserve_centroid_sparse_attention),
        block_size=32,
        prompt_pages=7,
    ),
    Case(
        "masked_quest_sparse_attention",
        flows.MaskedQuestSparseAttention,
        scored(quest.masked_quest_sparse_attention),
    ),
    Case(
        "centered_block_sparse_attention",
        flows.CenteredBlockSparseAttention,
        scored(centroid.centered_block_sparse_attention),
    ),
    Case(
        "running_avg_block_sparse",
        flows.RunningAvgBlockSparse,
        by_head(lambda decode, _: stateful.running_avg_block_sparse(decode), scores=True),
    ),
    Case(
        "venergy_gated_centroid",
        flows.VEnergyGatedCentroid,
        scored(centroid.venergy_gated_centroid),
    ),
    Case("fsa", flows.FSA, scored(centroid.block_sparse_attention)),
    Case("flash_moba", flows.FlashMoBA, scored(centroid.block_sparse_attention)),
    Case(
        "frozen_dynamic_top_p",
        partial(flows.FrozenDynamicTopP, p=0.6),
        reading(partial(pruned.frozen_dynamic_top_p, share=0.6, count=4, temperature=1.0)),
        budget=5,
    ),
    Case("quest", flows.Quest, scored(quest.quest)),
    Case("quest_group_sum", flows.QuestGroupSum, scored(quest.quest_group_sum)),
    Case("quest_mean_query", flows.QuestMeanQuery, quest_mean_query),
    Case("mean_quest_blend", flows.MeanQuestBlend, scored(quest.mean_quest_blend)),
    Case("streaming_llm", flows.StreamingLLM, scored(ends.streaming_llm)),
    Case("oracle", flows.Oracle, scored(ends.oracle)),
    Case("random", partial(flows.Random, seed=7), scored(partial(ends.random, seed=7))),
    Case("moba", flows.MoBA, at_moments(branches.moba)),
    Case("retro_infer", flows.RetroInfer, at_moments(branches.retro_infer)),
    Case("infllm_v2", flows.InfLLMv2, scored(partial(compressed.infllm_v2, width=4, stride=2))),
    Case(
        "nsa",
        partial(flows.NSA, hidden=6, window_tokens=16, weights=NSA),
        at_moments(nsa),
    ),
    Case(
        "seer_attention",
        partial(flows.SeerAttention, gate_width=6, weights=SEER),
        scored(partial(learned.seer_attention, query_weight=SEER["query"], key_weight=SEER["key"])),
    ),
    Case(
        "twilight",
        partial(flows.Twilight, p=0.6),
        reading(partial(pruned.twilight, base=quest.quest, share=0.6)),
        budget=5,
    ),
    Case(
        "nsa_selection",
        partial(
            flows.NSASelection,
            hidden=6,
            weights={name: table for name, table in NSA.items() if name.startswith("key")},
        ),
        scored(partial(compressed.nsa_scores, weights=nsa_weights(NSA, quarter=2))),
    ),
    Case(
        "h2o",
        partial(flows.H2O, observed=6),
        by_head(lambda decode, prompt: eviction.h2o(decode, prompt[-6:]), scores=True),
    ),
    Case("tova", flows.TOVA, by_head(eviction.tova, scores=True)),
    Case(
        "snapkv",
        partial(flows.SnapKV, observed=6, reach=1),
        by_head(
            lambda decode, prompt: eviction.snapkv(decode, prompt[-6:], keep=decode.budget, reach=1)
        ),
    ),
    Case(
        "rocketkv",
        partial(flows.RocketKV, keep=5, channels=4, observed=6, reach=1),
        by_head(
            lambda decode, prompt: eviction.rocketkv(
                decode,
                prompt[-6:],
                keep=5,
                reach=1,
                score=partial(channels.channel_bounds, count=4),
            )
        ),
    ),
    Case("sparq", partial(flows.SparQ, channels=5), at_moments(partial(branches.sparq, count=5))),
    Case(
        "duo_attention",
        partial(flows.DuoAttention, retrieval_heads=[1], window_tokens=16),
        reading(partial(branches.duo_attention, retrieval={1}, window_pages=2)),
    ),
    Case(
        "double_sparsity",
        partial(flows.DoubleSparsity, labels=LABELS),
        scored(partial(channels.double_sparsity, labels=list(LABELS))),
        block_size=1,
        prompt_pages=40,
        budget=8,
    ),
    Case(
        "lserve",
        partial(flows.LServe, every=3, window_tokens=64),
        by_head(
            lambda decode, _: stateful.lserve(
                decode, quest.lserve_sparse_attention, every=3, window_pages=2
            )
        ),
        block_size=32,
        prompt_pages=7,
    ),
)

CASES = (*GQA, *MLA)
