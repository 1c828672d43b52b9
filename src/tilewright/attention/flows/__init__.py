"""Ready flows, a file a family. Importing this package registers all of them."""

from tilewright.attention.flows.centroid import (
    FSA,
    BlockSparseAttention,
    CenteredBlockSparseAttention,
    FlashMoBA,
    GQABlockSparseAttention,
    MoBA,
    RunningAvgBlockSparse,
    VEnergyGatedCentroid,
)
from tilewright.attention.flows.double_sparsity import DoubleSparsity
from tilewright.attention.flows.dsa import DSA
from tilewright.attention.flows.duo_attention import DuoAttention
from tilewright.attention.flows.eviction import H2O, TOVA
from tilewright.attention.flows.frozen_dynamic_top_p import FrozenDynamicTopP
from tilewright.attention.flows.infllm_v2 import InfLLMv2
from tilewright.attention.flows.learned_block_sparse_mla import LearnedBlockSparseMLA
from tilewright.attention.flows.learned_factorized_block_sparse_mla import (
    LearnedFactorizedBlockSparseMLA,
)
from tilewright.attention.flows.lserve import (
    LServe,
    LServeCentroidMLA,
    LServeCentroidSparseAttention,
    LServeSparseAttention,
    RopeUnawareLServeCentroidMLA,
)
from tilewright.attention.flows.mla_centroid import (
    RopeAwareBlockSparseMLA,
    RopeUnawareBlockSparseMLA,
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
from tilewright.attention.flows.nsa import NSA, NSASelection
from tilewright.attention.flows.oracle import Oracle, OracleMLA
from tilewright.attention.flows.quest import (
    GQAQuestSparseAttention,
    MaskedQuestSparseAttention,
    MeanQuestBlend,
    Quest,
    QuestGroupSum,
    QuestMeanQuery,
    QuestMLA,
)
from tilewright.attention.flows.random import Random, RandomMLA
from tilewright.attention.flows.ready import ScoredFlow, ScoredFlowMLA
from tilewright.attention.flows.retro_infer import RetroInfer
from tilewright.attention.flows.rocketkv import RocketKV
from tilewright.attention.flows.seer_attention import SeerAttention
from tilewright.attention.flows.snapkv import SnapKV
from tilewright.attention.flows.sparq import SparQ
from tilewright.attention.flows.streaming_llm import StreamingLLM, StreamingLLMMLA
from tilewright.attention.flows.twilight import Twilight, TwilightMLA

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
