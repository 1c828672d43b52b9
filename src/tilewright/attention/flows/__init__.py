"""Ready flows, one a file. Importing this package registers all of them."""

from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention
from tilewright.attention.flows.centered_block_sparse_attention import CenteredBlockSparseAttention
from tilewright.attention.flows.double_sparsity import DoubleSparsity
from tilewright.attention.flows.dsa import DSA
from tilewright.attention.flows.duo_attention import DuoAttention
from tilewright.attention.flows.flash_moba import FlashMoBA
from tilewright.attention.flows.frozen_dynamic_top_p import FrozenDynamicTopP
from tilewright.attention.flows.fsa import FSA
from tilewright.attention.flows.gqa_block_sparse_attention import GQABlockSparseAttention
from tilewright.attention.flows.gqa_quest_sparse_attention import GQAQuestSparseAttention
from tilewright.attention.flows.h2o import H2O
from tilewright.attention.flows.infllm_v2 import InfLLMv2
from tilewright.attention.flows.learned_block_sparse_mla import LearnedBlockSparseMLA
from tilewright.attention.flows.learned_factorized_block_sparse_mla import (
    LearnedFactorizedBlockSparseMLA,
)
from tilewright.attention.flows.lserve import LServe
from tilewright.attention.flows.lserve_centroid_mla import LServeCentroidMLA
from tilewright.attention.flows.lserve_centroid_sparse_attention import (
    LServeCentroidSparseAttention,
)
from tilewright.attention.flows.lserve_sparse_attention import LServeSparseAttention
from tilewright.attention.flows.masked_quest_sparse_attention import MaskedQuestSparseAttention
from tilewright.attention.flows.mean_quest_blend import MeanQuestBlend
from tilewright.attention.flows.moba import MoBA
from tilewright.attention.flows.nsa import NSA
from tilewright.attention.flows.nsa_selection import NSASelection
from tilewright.attention.flows.oracle import Oracle
from tilewright.attention.flows.oracle_mla import OracleMLA
from tilewright.attention.flows.quest import Quest
from tilewright.attention.flows.quest_group_sum import QuestGroupSum
from tilewright.attention.flows.quest_mean_query import QuestMeanQuery
from tilewright.attention.flows.quest_mla import QuestMLA
from tilewright.attention.flows.random import Random
from tilewright.attention.flows.random_mla import RandomMLA
from tilewright.attention.flows.ready import ScoredFlow, ScoredFlowMLA
from tilewright.attention.flows.retro_infer import RetroInfer
from tilewright.attention.flows.rocketkv import RocketKV
from tilewright.attention.flows.rope_aware_block_sparse_mla import RopeAwareBlockSparseMLA
from tilewright.attention.flows.rope_unaware_block_sparse_mla import RopeUnawareBlockSparseMLA
from tilewright.attention.flows.rope_unaware_lserve_centroid_mla import RopeUnawareLServeCentroidMLA
from tilewright.attention.flows.rope_weighted_block_sparse_mla import (
    RopeWeightedB10,
    RopeWeightedB15,
    RopeWeightedB20,
    RopeWeightedB25,
    RopeWeightedB50,
    RopeWeightedB75,
    RopeWeightedB90,
    RopeWeightedB100,
    RopeWeightedBlockSparseMLA,
)
from tilewright.attention.flows.running_avg_block_sparse import RunningAvgBlockSparse
from tilewright.attention.flows.seer_attention import SeerAttention
from tilewright.attention.flows.snapkv import SnapKV
from tilewright.attention.flows.sparq import SparQ
from tilewright.attention.flows.streaming_llm import StreamingLLM
from tilewright.attention.flows.streaming_llm_mla import StreamingLLMMLA
from tilewright.attention.flows.tova import TOVA
from tilewright.attention.flows.twilight import Twilight
from tilewright.attention.flows.twilight_mla import TwilightMLA
from tilewright.attention.flows.venergy_gated_centroid import VEnergyGatedCentroid

__all__ = (
    "DSA",
    "FSA",
    "H2O",
    "NSA",
    "TOVA",
    "BlockSparseAttention",
    "CenteredBlockSparseAttention",
    "DoubleSparsity",
    "DuoAttention",
    "FlashMoBA",
    "FrozenDynamicTopP",
    "GQABlockSparseAttention",
    "GQAQuestSparseAttention",
    "InfLLMv2",
    "LServe",
    "LServeCentroidMLA",
    "LServeCentroidSparseAttention",
    "LServeSparseAttention",
    "LearnedBlockSparseMLA",
    "LearnedFactorizedBlockSparseMLA",
    "MaskedQuestSparseAttention",
    "MeanQuestBlend",
    "MoBA",
    "NSASelection",
    "Oracle",
    "OracleMLA",
    "Quest",
    "QuestGroupSum",
    "QuestMLA",
    "QuestMeanQuery",
    "Random",
    "RandomMLA",
    "RetroInfer",
    "RocketKV",
    "RopeAwareBlockSparseMLA",
    "RopeUnawareBlockSparseMLA",
    "RopeUnawareLServeCentroidMLA",
    "RopeWeightedB10",
    "RopeWeightedB15",
    "RopeWeightedB20",
    "RopeWeightedB25",
    "RopeWeightedB50",
    "RopeWeightedB75",
    "RopeWeightedB90",
    "RopeWeightedB100",
    "RopeWeightedBlockSparseMLA",
    "RunningAvgBlockSparse",
    "ScoredFlow",
    "ScoredFlowMLA",
    "SeerAttention",
    "SnapKV",
    "SparQ",
    "StreamingLLM",
    "StreamingLLMMLA",
    "Twilight",
    "TwilightMLA",
    "VEnergyGatedCentroid",
)
