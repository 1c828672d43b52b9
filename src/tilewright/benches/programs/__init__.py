"""Ready programs of `run`, one a file, and the table of them."""

from tilewright.benches.programs.allgather import ALLGATHER
from tilewright.benches.programs.allreduce import ALLREDUCE
from tilewright.benches.programs.alltoall import ALLTOALL
from tilewright.benches.programs.broadcast import BROADCAST
from tilewright.benches.programs.contract import build_programs
from tilewright.benches.programs.decode_attention import DECODE_ATTENTION
from tilewright.benches.programs.decode_merge import DECODE_MERGE
from tilewright.benches.programs.flash_attention import FLASH_ATTENTION
from tilewright.benches.programs.gemm_single_pe import GEMM_SINGLE_PE
from tilewright.benches.programs.gpt3_qkv import GPT3_QKV
from tilewright.benches.programs.layer_norm import LAYER_NORM
from tilewright.benches.programs.matmul import MATMUL
from tilewright.benches.programs.pointer_chase import POINTER_CHASE
from tilewright.benches.programs.qkv_gemm import QKV_GEMM
from tilewright.benches.programs.quest_decode import QUEST_DECODE
from tilewright.benches.programs.reduce_scatter import REDUCE_SCATTER
from tilewright.benches.programs.ring_attention import RING_ATTENTION
from tilewright.benches.programs.softmax import SOFTMAX
from tilewright.benches.programs.stream import STREAM
from tilewright.benches.programs.tile_sum import (
    ALLREDUCE_CUBES,
    ALLREDUCE_MESH,
    ALLREDUCE_RING,
    ALLREDUCE_TREE,
)
from tilewright.benches.programs.va_offset_verify import VA_OFFSET_VERIFY

__all__ = ("PROGRAMS",)

PROGRAMS = build_programs(
    (
        QKV_GEMM,
        GEMM_SINGLE_PE,
        GPT3_QKV,
        MATMUL,
        SOFTMAX,
        LAYER_NORM,
        FLASH_ATTENTION,
        DECODE_ATTENTION,
        QUEST_DECODE,
        RING_ATTENTION,
        DECODE_MERGE,
        STREAM,
        POINTER_CHASE,
        VA_OFFSET_VERIFY,
        ALLREDUCE,
        ALLGATHER,
        REDUCE_SCATTER,
        ALLTOALL,
        BROADCAST,
        ALLREDUCE_RING,
        ALLREDUCE_CUBES,
        ALLREDUCE_MESH,
        ALLREDUCE_TREE,
    )
)
