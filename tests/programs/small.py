"""Parameters that make each ready program small, and a way to run it."""

from typing import Any

from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.host import RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.programs import PROGRAMS
from tilewright.programs.contract import BenchOutcome

MACHINE: Machine = build_machine(parse_machine("ahbm-small"))
SIPS: Machine = build_machine(parse_machine("ahbm-small", ["sip.count=3"]))

HEADS = {"q_heads": 4, "kv_heads": 2, "head_dim": 32}
SMALL: dict[str, dict[str, Any]] = {
    "qkv_gemm": {"m": 32, "k": 64, "n": 40},
    "gemm_single_pe": {},
    "gpt3_qkv": {"tokens": 3, "ways": 3072},
    "matmul": {"m": 32, "k": 80, "n": 24, "tile_m": 16, "tile_n": 16, "tile_k": 32},
    "softmax": {"rows": 42, "columns": 100},
    "layer_norm": {"rows": 42, "columns": 100},
    "flash_attention": {"length": 100, "block": 16, "key_block": 32, "cubes": 2, **HEADS},
    "decode_attention": {"requests": 3, "max_length": 100, "key_block": 32, "cubes": 2, **HEADS},
    "quest_decode": {"pages": 32, "budget": 6, **HEADS},
    "ring_attention": {"length": 100, "block": 16, "key_block": 32, **HEADS},
    "decode_merge": {"context": 500, "key_block": 32, "cubes": 3, **HEADS},
    "stream": {"elements": 50_001},
    "pointer_chase": {"hops": 16},
    "va_offset_verify": {"cubes": 2},
    "allreduce": {"bytes": 3000},
    "allgather": {"bytes": 3000},
    "reduce_scatter": {"bytes": 3000, "buffer": "sram"},
    "alltoall": {"bytes": 3000},
    "broadcast": {"bytes": 3000, "algorithm": "ring"},
    "allreduce_ring": {"bytes": 400},
    "allreduce_cubes": {"bytes": 400},
    "allreduce_mesh": {"bytes": 400},
    "allreduce_tree": {"bytes": 400},
}
EXCHANGES = ("allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast")


def run_small(
    name: str,
    *,
    data: bool = True,
    seed: int = 0,
    engine: EngineKind | Auto = AUTO,
    **parameters: Any,
) -> BenchOutcome:
    machine = SIPS if name in EXCHANGES else MACHINE
    with RuntimeContext(machine, data=data, seed=seed, engine=engine) as torch:
        return PROGRAMS[name].run(torch, **(SMALL[name] | parameters))
