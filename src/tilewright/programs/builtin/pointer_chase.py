"""Loads that depend on each other: the latency of a memory near or far."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from tilewright import language as tl
from tilewright.errors import BenchError
from tilewright.host import Interleave, RuntimeContext, Tensor
from tilewright.machine import Machine
from tilewright.machine.coords import PeCoord
from tilewright.programs.bound import LATENCY, Bound, Path, latency_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.inputs import Array, Draw, reserve, team_of
from tilewright.programs.parameter import Changes, Offer, ProgramFit, Values
from tilewright.programs.probe.case import PROBE_CASES, Flow, Unfit
from tilewright.units import format_ps

NODE_BYTES = 64  # one number in each, so that no two share a flit
NUMBER_BYTES = 4
Where = Literal["local", "same_cube", "next_cube", "far_cube", "other_sip"]


def chase_kernel(chain_ptr: Any, out_ptr: Any, start: int, hops: int) -> None:
    """Where so many hops from ``start`` lead; no load can begin before the last one has ended."""
    place: Any = start
    for _ in range(hops):
        place = tl.load(chain_ptr + place)
    tl.store(out_ptr, place)


def _run(
    torch: RuntimeContext,
    hops: Annotated[int, "loads, each of which needs the one before"] = 256,
    where: Annotated[
        Where, "the slice with the chain, as seen from the PE that walks it"
    ] = "local",
) -> BenchOutcome:
    flow = _flow(torch, where)
    page_bytes = torch.machine.spec.pe.mmu.page_bytes
    num_sips = torch.device.sips.index(flow.target.sip) + 1
    so_far, alone = team_of(torch, sips=num_sips, cubes=flow.target.cube + 1), team_of(torch, pes=1)
    size = (so_far.num_pes * page_bytes // NUMBER_BYTES,)
    one_page_each = so_far.policy(*[Interleave(page_bytes)] * 3)
    chain = reserve(torch, "chain", size, "i32", one_page_each)
    out = reserve(torch, "out", (1,), "i32", alone.policy())
    order = Draw(torch).integers.permutation(_nodes(chain, flow.target))[: hops + 1]
    if hops < 1 or order.size <= hops:
        found, expected = f"hops={hops}", f"1 to {order.size - 1}: a page has no more nodes"
        raise BenchError("pointer_chase", found, expected, "take fewer")
    numbers = np.zeros(size, np.int32)
    numbers[order[:-1]] = order[1:]  # each says where the next one is
    chain.copy_(torch.from_numpy(numbers), timed=False)
    report = torch.launch(chase_kernel, chain, out, int(order[0]), hops, grid=(1,), on=out).report
    return BenchOutcome(
        bound=_bound(torch.machine, report.pes, flow.target, hops),
        launches=(report,),
        max_error=float(abs(int(out.numpy(timed=False)[0]) - int(order[-1]))),
        tolerance=0.0,
        notes=(f"{format_ps(report.execution_ps // hops)} a hop",),
    )


def _flow(torch: RuntimeContext, where: str) -> Flow:
    """The probe's, with the SIPs of the device for the machine's first ones."""
    try:
        (flow,) = PROBE_CASES[f"pe_{where}"].build(torch.machine, NODE_BYTES)
    except Unfit as error:
        raise _refusal(where, str(error)) from error
    sips = torch.device.sips
    if flow.target.sip >= len(sips):
        raise _refusal(where, f"the device has {len(sips)} SIP")
    target = replace(flow.target, sip=sips[flow.target.sip])
    return replace(flow, issuer=PeCoord(sips[0], 0, 0), target=target)


def _refusal(where: str, why: str) -> BenchError:
    fix = "choose a nearer one, or a larger machine"
    return BenchError("pointer_chase", f"where={where}, but {why}", "a place that is there", fix)


def _nodes(chain: Tensor, home: PeCoord) -> Array:
    """The numbers of the chain that lie in a PE's slice, one of each node."""
    (shard,) = (shard for shard in chain.shards if shard.home == home)
    starts = [np.arange(run.start, run.stop, NODE_BYTES) for run in shard.ranges]
    return np.concatenate(starts) // NUMBER_BYTES


def _bound(machine: Machine, pes: tuple[PeCoord, ...], owner: PeCoord, hops: int) -> Bound:
    """Round trips on an idle machine. A row is opened once at least, for all its nodes."""
    hbm = machine.spec.cube.hbm
    path = Path(pes=pes, loads=hops, computes=False, read_from=dict.fromkeys(pes, owner))
    is_detailed = hbm.impl is None and hbm.model == "detailed"
    activate_ps = hbm.timing.rcd_read_clocks * hbm.timing.clock_ps if is_detailed else 0
    num_rows = -(-hops * NODE_BYTES // hbm.row_bytes)
    total_ps = latency_of(machine, path).path_ps + (num_rows - 1) * activate_ps
    return Bound.of({LATENCY: total_ps}, {LATENCY: 0})


def _counts(offer: Offer, values: Values) -> Changes:
    """Return as many hops as a page has nodes for."""
    most = offer.machine.pe.mmu.page_bytes // NODE_BYTES - 1
    return {"hops": most} if int(values["hops"]) > most >= 1 else {}


PROGRAMS = (
    BenchProgram(
        "pointer_chase",
        "loads that depend on each other: the latency of a near or far slice",
        _run,
        fit=ProgramFit(counts=_counts),
    ),
)
