"""Lower bounds worked out by hand, and runs that come near them: BO1 to BO4."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any

from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Operation
from tilewright.engine import EngineKind
from tilewright.host import LaunchReport, RuntimeContext
from tilewright.machine.build import Machine, shift_refresh
from tilewright.machine.coords import PeCoord
from tilewright.programs import PROGRAMS
from tilewright.programs.contract import BenchOutcome
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, at_least, exact

# Two SIPs of one cube, whose network is a crossbar, joined by a switch; wires have no length.
PLAIN = ("sip.columns=1", "sip.rows=1", "cube.noc={kind: crossbar}", "ps_per_mm=0")

# In ps, from the data sheet. A flit has 64 bytes: PCIe 5.0 x16 carries 256 of 280 bytes of 63.02
# GB/s; the IO chiplet and UCIe have 128 GB/s, the crossbar 256 GB/s.
PCIE, IO, UCIE, NOC = 1_111, 500, 500, 250
ENDPOINT, IO_NOC, SIDE, XBAR = 100_000, 1_000, 8_000, 1_000
IO_CPU, M_CPU, CPU, SCHEDULER, WALK = 10_000, 5_000, 2_000, 1_000, 50_000
RCD, CL, CWL, BURST = 19_500, 10_000, 5_000, 1_000
LINK, SWITCH = 200_000, 100_000

TO_IO_CPU = (PCIE + ENDPOINT) + (PCIE + IO_NOC) + IO
TO_CUBE = (IO + IO_NOC) + (IO + SIDE) + (UCIE + SIDE) + (NOC + XBAR) + NOC  # its M_CPU
ACROSS = (NOC + XBAR) + NOC  # the crossbar: to a PE's CPU, to or from its memory
COMMAND = TO_IO_CPU + IO_CPU + TO_CUBE + M_CPU + ACROSS + CPU  # either way
UNTIL_SENT = CPU + WALK + SCHEDULER
LOAD = UNTIL_SENT + ACROSS + RCD + CL + BURST + ACROSS
COMPUTE = 2 * SCHEDULER  # operands from the TCM, then the unit
STORE = 2 * SCHEDULER + ACROSS + CWL + BURST + ACROSS  # to the TCM, then to memory
SEND = 2 * SCHEDULER
TO_CHIPLET = (NOC + XBAR) + (NOC + SIDE) + (UCIE + SIDE) + (IO + IO_NOC)
FROM_CHIPLET = (IO + SIDE) + (UCIE + SIDE) + (NOC + XBAR) + NOC
TO_OTHER_SIP = TO_CHIPLET + IO + (IO + LINK + SWITCH) + (IO + LINK) + (IO + IO_NOC) + FROM_CHIPLET

NEAR: dict[str, dict[str, Any]] = {
    "gemm_single_pe": {},
    "qkv_gemm": {},
    "softmax": {"rows": 64},
    "stream": {"elements": 50_000},
    "pointer_chase": {"hops": 32},
    "va_offset_verify": {},
    "allreduce_mesh": {},
}
NUM_PHASES = 4


def _nothing() -> None:
    """Do nothing: a kernel whose launch is its command and its answer."""


@cache
def _empty_launch(kind: EngineKind, num_pes: int) -> LaunchReport:
    pes = [PeCoord(0, 0, pe) for pe in range(num_pes)]
    with RuntimeContext(machine_named("ahbm", *PLAIN), engine=kind) as torch:
        return torch.launch(_nothing, on=pes).report


def _outcome(kind: EngineKind, name: str, machine: Machine, **parameters: Any) -> BenchOutcome:
    with RuntimeContext(machine, engine=kind, data=False) as torch:
        return PROGRAMS[name].run(torch, **parameters)


@cache
def _plain(kind: EngineKind, name: str) -> BenchOutcome:
    return _outcome(kind, name, machine_named("ahbm", *PLAIN))


def check_command(kind: EngineKind) -> Finding:
    """BO1: a kernel that does nothing takes a command to one PE, and its answer."""
    return exact(2 * COMMAND, _empty_launch(kind, 1).latency_ps, "ps")


def check_last_command(kind: EngineKind) -> Finding:
    """BO1: the M_CPU hands a command on to one PE after the other."""
    report = _empty_launch(kind, 8)
    return exact(COMMAND + 7 * M_CPU, report.last_start_ps - report.submitted_ps, "ps")


def check_part(kind: EngineKind, *, part: str, expected_ps: int) -> Finding:
    """BO2: f16 products of 32 x 128 by 128 x 32 on one PE."""
    return exact(expected_ps, _plain(kind, "gemm_single_pe").bound.parts[part], "ps")


def check_far(kind: EngineKind) -> Finding:
    """BO3: what the last PE of a SIP has loaded goes through the switch and is stored there."""
    expected_ps = 2 * COMMAND + 7 * M_CPU + LOAD + SEND + TO_OTHER_SIP + COMPUTE + STORE
    return exact(expected_ps, _plain(kind, "allreduce").bound.parts["latency"], "ps")


def check_links(kind: EngineKind) -> Finding:
    """BO3: 64 KiB leave a SIP by 4 links of 128 GB/s, one switch pass before the last is stored."""
    sent_ps = 65_536 * 1_000 // 512
    expected_ps = 2 * COMMAND + LOAD + SEND + sent_ps + 2 * LINK + SWITCH + COMPUTE + STORE
    return exact(expected_ps, _plain(kind, "allreduce").bound.parts["SIP links"], "ps")


def _least_ratio(kind: EngineKind, name: str, machine: Machine, **parameters: Any) -> Fraction:
    """Return the least latency over some refresh phases, as a multiple of its bound."""
    interval_ps = machine.spec.cube.hbm.refresh.interval_ps
    shifted = [
        shift_refresh(machine, index * interval_ps // NUM_PHASES) for index in range(NUM_PHASES)
    ]
    outcomes = [_outcome(kind, name, each, **parameters) for each in shifted]
    return min(Fraction(each.latency_ps, each.bound.total_ps) for each in outcomes)


def check_program(kind: EngineKind, *, name: str) -> Finding:
    """BO4: a ready program."""
    machine = machine_named("ahbm-small")
    return at_least(1, _least_ratio(kind, name, machine, **NEAR[name]), "x bound")


def check_collective(kind: EngineKind, *, name: str, algorithms: tuple[str, ...]) -> Finding:
    """BO4: a collective of three SIPs by every algorithm that can, the one that comes nearest."""
    machine = machine_named("ahbm-small", "sip.count=3", "sip.columns=1", "sip.rows=1")
    ratios = [
        _least_ratio(kind, name, machine, bytes=3_072, algorithm=algorithm)
        for algorithm in algorithms
    ]
    return at_least(1, min(ratios), "x bound")


def oracles() -> Iterator[Row]:
    yield "BO1 a launch of nothing on one PE", check_command
    yield "BO1 the command of the eighth PE", check_last_command
    product = {
        "latency": 2 * COMMAND + LOAD + COMPUTE + STORE,
        "HBM": 2 * COMMAND + LOAD - BURST + 18_432 * 1_000 // 256,
        "DMA link": 2 * COMMAND + LOAD + COMPUTE + STORE - NOC + 16_384 * 1_000 // 256,
        "GEMM unit": 2 * COMMAND + LOAD + COMPUTE + STORE + 262_144 * 1_000 // 8_192,
    }
    for part, expected_ps in product.items():
        name = f"BO2 gemm_single_pe: bound of {part}"
        yield name, partial(check_part, part=part, expected_ps=expected_ps)
    yield "BO3 all-reduce of 64 KiB over two SIPs: bound of latency", check_far
    yield "BO3 all-reduce of 64 KiB over two SIPs: bound of SIP links", check_links
    for name in NEAR:
        yield f"BO4 {name}: fastest of {NUM_PHASES} phases", partial(check_program, name=name)
    for name, operation in (
        ("allreduce", Operation.ALL_REDUCE),
        ("allgather", Operation.ALL_GATHER),
        ("broadcast", Operation.BROADCAST),
    ):
        able = tuple(it.name for it in ALGORITHMS.values() if operation in it.operations)
        check = partial(check_collective, name=name, algorithms=able)
        yield f"BO4 {name} by {len(able)} algorithms: nearest run", check
