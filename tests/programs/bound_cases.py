"""Random runs of programs, collectives and decode steps on random machines, beside their bounds."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.attention.machine.pair import graph_of
from tests.programs.probe.machines import overrides, small_machine
from tilewright.attention.backends.machine import RowPlacement, Uniform
from tilewright.attention.graph import DType
from tilewright.attention.planner import PlanSpec, parse_policy
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Operation
from tilewright.device.ipcq import RingKind
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.programs import PROGRAMS
from tilewright.studies.decode.step import DecodeStep, simulate_step
from tilewright.validation.collective.measure import CollectiveCase, run_case

__all__ = ("NAMES", "Case", "Result", "cases", "run")

TIMES = {
    "host.command_bytes": (32, 1_000),
    "host.entry_bytes": (1, 64),
    "host.pcie.endpoint_ps": (0, 3_000),
    "sip.io_cpu.command_ps": (1, 90_000),
    "cube.m_cpu.command_ps": (1, 40_000),
    "pe.cpu.command_ps": (1, 30_000),
    "pe.scheduler.command_ps": (1, 9_000),
    "pe.mmu.walk_ps": (0, 400_000),
    "pe.mmu.hit_ps": (7_000,),
    "pe.mmu.page_bytes": (4_096, 16_384),
    "pe.queue_commands": (8, 16),
    "pe.tcm.read_bytes_per_us": (64_000, 4_000_000),
    "pe.tcm.write_bytes_per_us": (64_000, 4_000_000),
    "pe.registers.capacity_bytes": (16_384, 65_536),
    "pe.gemm.hz": (100_000_000, 20_000_000_000),
    "pe.gemm.kind": ("systolic",),
    "pe.vector.lanes": (16, 4_096),
    "pe.vector.hz": (100_000_000,),
    "fabric.latency_ps": (0, 1_000, 900_000),
    "fabric.bytes_per_us": (9_000, 900_000),
    "fabric.links": (5,),
    "fabric.switch_ps": (0, 700_000),
    "cube.hbm.refresh.phase_ps": (100_000, 1_700_000, 3_300_000),
    "cube.hbm.refresh.all_bank_ps": (100_000, 600_000),
    "cube.hbm.timing.rcd_write_clocks": (0, 60),
    "cube.hbm.timing.cwl_clocks": (0, 40),
    "cube.hbm.timing.rp_clocks": (0, 60),
    "cube.hbm.timing.rtp_clocks": (1, 40),
    "cube.hbm.timing.wr_clocks": (0, 90),
    "cube.hbm.simple_latency_ps": (0, 60_000),
}
FABRICS = (
    ("fabric.kind=switch",),
    ("fabric.kind=ring",),
    ("fabric.kind=torus",),
    ("fabric.kind=mesh",),
)
EXCHANGES = {
    "allreduce": Operation.ALL_REDUCE,
    "allgather": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "alltoall": Operation.ALL_TO_ALL,
    "broadcast": Operation.BROADCAST,
}
COLLECTIVES = "collective"  # of PEs or SIPs, timed from the start of programs to their end
DECODE_STEP = "decode step"
NAMES = (*PROGRAMS, COLLECTIVES, DECODE_STEP)

few, some, dims = st.integers(1, 3), st.integers(16, 60), st.sampled_from((16, 32))
dtypes = st.sampled_from(("f16", "f32"))
heads = {"q_heads": st.just(4), "kv_heads": st.just(2), "head_dim": dims}
team = {"cubes": st.sampled_from((0, 1)), "pes": st.sampled_from((0, 1, 2))}
tile = {"tile_m": some, "tile_n": some, "tile_k": some}
buffers = st.sampled_from(("tcm", "sram", "hbm"))
sizes = st.sampled_from((4, 64, 400, 3_000, 20_000))
PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "qkv_gemm": {"m": some, "k": some, "n": some, "dtype": dtypes, **team},
    "gemm_single_pe": {"m": some, "k": some, "n": some, "dtype": dtypes},
    "gpt3_qkv": {"tokens": few, "ways": st.just(2_048)},
    "matmul": {
        "m": some, "k": some, "n": some, "dtype": dtypes, **tile, **team,
        "epilogue": st.sampled_from(("none", "fused", "apart")),
        "staging": st.sampled_from(("ref/ref", "load/ref", "ref/load", "load/load")),
    },
    "softmax": {"rows": some, "columns": some, "block_rows": few, **team},
    "layer_norm": {"rows": some, "columns": some, "block_rows": few, **team},
    "flash_attention": {
        "length": st.integers(1, 60), "block": dims, "key_block": dims, "causal": st.booleans(),
        **heads, **team,
    },
    "decode_attention": {
        "requests": few, "min_length": st.just(1), "max_length": st.integers(1, 60),
        "key_block": dims, **heads, **team,
    },
    "quest_decode": {
        "pages": st.integers(3, 20), "budget": few, **heads,
        "selection": st.sampled_from(("uniform", "recent")),
    },
    "ring_attention": {
        "length": st.integers(1, 60), "block": dims, "key_block": dims, "causal": st.booleans(),
        "order": st.sampled_from(("zigzag", "contiguous")), **heads, "pes": st.just(2),
    },
    "decode_merge": {"context": some, "key_block": dims, **heads, **team},
    "stream": {"elements": st.sampled_from((16, 999, 60_000)), "block": st.just(1_024), **team},
    "pointer_chase": {
        "hops": st.integers(1, 20), "where": st.sampled_from(("local", "same_cube")),
    },
    "va_offset_verify": {"shift": st.integers(0, 3), **team},
    **{
        name: {
            "bytes": st.integers(12, 5_000), "buffer": buffers,
            "algorithm": st.sampled_from(
                ("auto", *(it.name for it in ALGORITHMS.values() if operation in it.operations))
            ),
        }
        for name, operation in EXCHANGES.items()
    },
    "allreduce_ring": {"ranks": st.integers(1, 4), "bytes": sizes, "buffer": buffers},
    "allreduce_cubes": {"cubes": st.just(1), "bytes": sizes, "buffer": buffers},
    "allreduce_mesh": {"rows": few, "columns": st.just(1), "bytes": sizes, "buffer": buffers},
    "allreduce_tree": {"ranks": st.integers(1, 4), "bytes": sizes, "buffer": buffers},
    COLLECTIVES: {
        "operation": st.sampled_from(tuple(EXCHANGES.values())),
        "num_bytes": st.sampled_from((48, 480, 4_800, 48_000)),
        "buffer": st.sampled_from(RingKind),
        "in_one_chunk": st.booleans(),
        "num_pes": st.integers(0, 2),  # of a SIP, each a rank; 0: a rank is a SIP
    },
    DECODE_STEP: {
        "contexts": st.lists(st.integers(1, 150), min_size=1, max_size=2).map(tuple),
        "placement": st.sampled_from(RowPlacement),
        "is_dense": st.booleans(),
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """What to run, and how the machine differs from ahbm-small."""

    name: str
    parameters: dict[str, Any]
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    latency_ps: int
    bound_ps: int


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    """Draw parameters of the named program, collective or step, and a machine for it."""
    parameters = {key: draw(value) for key, value in PARAMETERS[name].items()}
    keys = draw(st.lists(st.sampled_from(sorted(TIMES)), max_size=8, unique=True))
    changed = [f"{key}={draw(st.sampled_from(TIMES[key]))}" for key in keys]
    known = {change.partition("=")[0] for change in changed}
    base = [each for each in draw(overrides()) if each.partition("=")[0] not in known]
    if name in EXCHANGES or name == COLLECTIVES:
        shape = ("sip", "fabric.kind")  # several SIPs, of one cube so that there are few PEs
        base = [each for each in base if not each.startswith(shape)]
        count = draw(st.integers(1 if name in EXCHANGES else 2, 3))
        base += [
            f"sip.count={count}",
            "sip.columns=1",
            "sip.rows=1",
            *draw(st.sampled_from(FABRICS)),
        ]
    return Case(name, parameters, (*base, *changed))


def run(case: Case) -> Result:
    """Run a case once, without values where none are needed."""
    if case.name == COLLECTIVES:
        return _run_collective(case)
    machine = small_machine(*case.overrides)
    if case.name == DECODE_STEP:
        return _run_step(machine, case)
    with RuntimeContext(machine, data=False) as torch:
        outcome = PROGRAMS[case.name].run(torch, **case.parameters)
    return Result(outcome.latency_ps, outcome.bound.total_ps)


def _run_collective(case: Case) -> Result:
    parameters = dict(case.parameters)
    num_pes = parameters.pop("num_pes")
    sips = range(small_machine(*case.overrides).grid.num_sips)
    pes = tuple((PeCoord(sip, 0, pe),) for sip in sips for pe in range(num_pes))
    row = run_case(
        CollectiveCase("ahbm-small", overrides=case.overrides, pes=pes, **parameters)
    ).row
    return Result(row.latency_ps, row.bound_ps)


def _run_step(machine: Machine, case: Case) -> Result:
    is_dense = case.parameters["is_dense"]
    step = DecodeStep(
        machine=machine,
        graph=graph_of("quest", DType.FLOAT16, page_size=16, width=32),
        kv_heads=2,
        plan=PlanSpec(budget=parse_policy("3")),
        selection=None if is_dense else Uniform(0),
        **case.parameters,
    )
    timing = simulate_step(step, tells_stages=False)
    return Result(timing.latency_ps, timing.bound.total_ps)
