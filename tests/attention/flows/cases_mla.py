"""Ready flows over latents beside their rules on paper."""

from functools import partial

from tests.attention.flows.case import QUERY_HEADS, ROPE, WIDTH, Case, reading, scored
from tests.attention.flows.table import drawn, dsa_sizes, factorized_sizes
from tests.attention.oracle_flows import ends, latent, learned, pruned, quest
from tilewright.attention import flows

RANK = WIDTH - ROPE
DSA, FACTORIZED = drawn(dsa_sizes()), drawn(factorized_sizes(8))
MIXTURE = drawn({"query": (WIDTH, QUERY_HEADS * WIDTH)})

MLA = (
    Case(
        "rope_aware_block_sparse_mla",
        flows.RopeAwareBlockSparseMLA,
        scored(latent.rope_aware_block_sparse_mla),
    ),
    Case(
        "rope_unaware_block_sparse_mla",
        flows.RopeUnawareBlockSparseMLA,
        scored(partial(latent.rope_unaware_block_sparse_mla, kv_lora_rank=RANK)),
    ),
    *(
        Case(
            f"rope_weighted_block_sparse_mla_b{percent}",
            getattr(flows, f"RopeWeightedB{percent}"),
            scored(
                partial(
                    latent.rope_weighted_block_sparse_mla,
                    kv_lora_rank=RANK,
                    rope_weight=percent / 100,
                )
            ),
        )
        for percent in (10, 15, 20, 25, 50, 75, 90, 100)
    ),
    Case(
        "lserve_centroid_mla",
        flows.LServeCentroidMLA,
        scored(latent.lserve_centroid_mla),
        block_size=32,
        prompt_pages=7,
    ),
    Case(
        "rope_unaware_lserve_centroid_mla",
        flows.RopeUnawareLServeCentroidMLA,
        scored(partial(latent.lserve_centroid_mla, channels=RANK)),
        block_size=32,
        prompt_pages=7,
    ),
    Case("quest_mla", flows.QuestMLA, scored(quest.quest_mla)),
    Case(
        "twilight_mla",
        partial(flows.TwilightMLA, p=0.6),
        reading(partial(pruned.twilight, base=quest.quest_mla, share=0.6)),
        budget=5,
    ),
    Case("oracle_mla", flows.OracleMLA, scored(ends.oracle)),
    Case("random_mla", partial(flows.RandomMLA, seed=7), scored(partial(ends.random, seed=7))),
    Case("streaming_llm_mla", flows.StreamingLLMMLA, scored(ends.streaming_llm)),
    Case(
        "learned_block_sparse_mla",
        partial(flows.LearnedBlockSparseMLA, weights=MIXTURE),
        scored(partial(latent.learned_block_sparse_mla, weight=MIXTURE["query"])),
    ),
    Case(
        "learned_factorized_block_sparse_mla",
        partial(flows.LearnedFactorizedBlockSparseMLA, descriptors=2, rank=5, weights=FACTORIZED),
        scored(
            partial(
                latent.learned_factorized_block_sparse_mla,
                query_weight=FACTORIZED["query"][0],
                token_weight=FACTORIZED["token"][0],
                channel_weight=FACTORIZED["key"][0],
            )
        ),
    ),
    Case(
        "dsa",
        partial(flows.DSA, index_heads=4, index_width=6, weights=DSA),
        scored(
            partial(
                learned.dsa,
                query_weight=DSA["query"].reshape(4, 6, -1),
                head_weight=DSA["head"],
                key_weight=DSA["key"],
            )
        ),
        block_size=1,
        prompt_pages=40,
        budget=8,
    ),
)
