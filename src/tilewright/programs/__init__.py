"""Ready programs of `run`, one a file, and the table of them."""

from tilewright.programs.allgather import ALLGATHER
from tilewright.programs.allreduce import ALLREDUCE
from tilewright.programs.alltoall import ALLTOALL
from tilewright.programs.broadcast import BROADCAST
from tilewright.programs.contract import build_programs
from tilewright.programs.decode_attention import DECODE_ATTENTION
from tilewright.programs.decode_merge import DECODE_MERGE
from tilewright.programs.flash_attention import FLASH_ATTENTION
from tilewright.programs.gemm_single_pe import GEMM_SINGLE_PE
from tilewright.programs.gpt3_qkv import GPT3_QKV
from tilewright.programs.layer_norm import LAYER_NORM
from tilewright.programs.matmul import MATMUL
from tilewright.programs.pointer_chase import POINTER_CHASE
from tilewright.programs.qkv_gemm import QKV_GEMM
from tilewright.programs.quest_decode import QUEST_DECODE
from tilewright.programs.reduce_scatter import REDUCE_SCATTER
from tilewright.programs.ring_attention import RING_ATTENTION
from tilewright.programs.softmax import SOFTMAX
from tilewright.programs.stream import STREAM
from tilewright.programs.tile_sum import (
    ALLREDUCE_CUBES,
    ALLREDUCE_MESH,
    ALLREDUCE_RING,
    ALLREDUCE_TREE,
)
from tilewright.programs.va_offset_verify import VA_OFFSET_VERIFY

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
