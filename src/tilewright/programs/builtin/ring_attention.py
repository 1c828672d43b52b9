"""Attention of a prompt over a ring: each member has a block of it, keys and values travel."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Literal

from tilewright.device.ipcq import RingSpec
from tilewright.errors import BenchError
from tilewright.executor.neighbour import Neighbours
from tilewright.host import (
    DPPolicy,
    LaunchReport,
    LocalShard,
    LocalSize,
    PeCoord,
    RuntimeContext,
    Split,
    Tensor,
)
from tilewright.machine.build import Machine
from tilewright.programs.attention import (
    HeadDim,
    Heads,
    QHeads,
    attention_by_head,
    collect_tokens,
    deal_tokens,
    heads_of,
    num_pairs,
)
from tilewright.programs.bound import Path
from tilewright.programs.contract import BenchOutcome, BenchProgram, measured, row_error
from tilewright.programs.inputs import (
    Array,
    Cubes,
    Draw,
    Pes,
    Sips,
    Team,
    check_sizes,
    deploy,
    reserve,
    team_of,
)
from tilewright.programs.parameter import (
    Changes,
    Offer,
    ProgramFit,
    Slot,
    Values,
    fit_slot,
    fit_team,
)
from tilewright.programs.ring_kernel import (
    TO_NEXT,
    TO_PREVIOUS,
    Order,
    RingDeal,
    RingTiling,
    ring_attention_kernel,
)
from tilewright.runtime.launch.bind import PerPe
from tilewright.units import PS_PER_US

Level = Literal["pe", "cube", "sip"]
LEVELS: tuple[Level, ...] = ("sip", "cube", "pe")
RINGS = 2  # that end at a PE: from the next member and from the previous one
NAMES = {"sip": "SIPs", "cube": "cubes", "pe": "PEs"}


def _run(
    torch: RuntimeContext,
    length: Annotated[int, "tokens of the prompt"] = 1024,
    q_heads: QHeads = 32,
    kv_heads: Annotated[int, "key-value heads, split over the PEs of a member"] = 8,
    head_dim: HeadDim = 128,
    causal: Annotated[bool, "a query sees no later key"] = True,
    ring: Annotated[Level, "what a member of the ring is: a PE, a cube or a SIP"] = "pe",
    order: Annotated[Order, "which tokens a member has: early and late ones, or neighbours"] = (
        "zigzag"
    ),
    block: Annotated[int, "queries of a head that are worked on at a time"] = 64,
    key_block: Annotated[int, "keys of a message"] = 128,
    slot: Slot = 4096,
    sips: Sips = 1,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("ring_attention", length=length, block=block, key_block=key_block, slot=slot)
    heads = heads_of("ring_attention", q_heads, kv_heads, head_dim)
    team = _fitted(team_of(torch, sips=sips, cubes=cubes, pes=pes), ring, heads)
    lanes = _lanes(torch, team, ring)
    num_members, num_lanes = len(lanes[0]), len(lanes)
    deal = RingDeal(length, num_members, order)
    draw = Draw(torch)
    queries = draw.normal((heads.kv, heads.group, length, heads.dim), "f16")
    keys, values = (draw.normal((heads.kv, 1, length, heads.dim), "f16") for _ in range(2))
    window = torch.machine.spec.pe.queue_commands
    tiling = RingTiling(heads.group, heads.dim, block, key_block, causal, window)
    num_levels = LEVELS.index(ring) + 1  # that split tokens among members; the others split heads
    policy = team.policy(*[Split(0)] * num_levels, *[Split(1)] * (len(LEVELS) - num_levels))
    arrays, rings = (queries, keys, values), RingSpec(slot_bytes=slot)
    out, report = _launch(torch, policy, lanes, deal, arrays, tiling, rings)
    pairs = num_pairs(length, causal=causal)
    received_bytes = deal.num_received(causal=causal) * heads.token_bytes
    passing_ps = _passing_ps(torch.machine, num_lanes, received_bytes, ring)
    sent_bytes = (num_members - 1) * deal.num_parts * deal.part_size * heads.token_bytes
    note = (
        f"a ring of {num_members} {NAMES[ring]}; each PE passes on about "
        f"{sent_bytes // num_lanes} bytes of keys and values while it computes"
    )
    return measured(
        torch,
        report,
        heads.work(team.num_pes, queries=length, tokens=length, pairs=pairs),
        lambda: row_error(
            collect_tokens(out.numpy(timed=False), deal.table, length),
            attention_by_head(queries, keys[:, 0], values[:, 0], causal=causal),
        ),
        path=_path(lanes[0], deal, report.pes),
        messages={"passing keys and values": (passing_ps, 0)},
        notes=(note,),
    )


def _fitted(team: Team, ring: Level, heads: Heads) -> Team:
    """Return a team for the heads: PEs of a member share them, so that none has nothing to do."""
    if ring != "pe":
        num_cubes = team.num_cubes if ring == "sip" else 1
        team = team.at_most(pes=max(1, heads.kv // num_cubes))
        if num_cubes > heads.kv:
            found = f"{heads.kv} KV heads for the {num_cubes} cubes of a SIP"
            fix = "set cubes lower, or kv_heads higher"
            raise BenchError("ring_attention", found, "at least one for each", fix)
    return team


def _lanes(torch: RuntimeContext, team: Team, ring: Level) -> list[list[PeCoord]]:
    """Return the PEs that have the same heads, lane by lane, in the order of their members.

    A ring of one is refused, unless the device has one PE: there is nothing to pass on then.
    """
    units = (
        torch.device.sips[: team.num_sips],
        range(team.num_cubes),
        range(team.num_pes_per_cube),
    )
    num_levels = LEVELS.index(ring) + 1
    members = list(product(*units[:num_levels]))
    if len(members) < 2 and team_of(torch, sips=0, cubes=0).num_pes > 1:
        found, fix = f"a ring of one {ring}", f"set {ring}s=0 for all there are, or another ring"
        raise BenchError("ring_attention", found, "at least two members", fix)
    return [
        [PeCoord(*member, *lane) for member in members] for lane in product(*units[num_levels:])
    ]


def _launch(
    torch: RuntimeContext,
    policy: DPPolicy,
    lanes: Sequence[Sequence[PeCoord]],
    deal: RingDeal,
    arrays: tuple[Array, Array, Array],
    tiling: RingTiling,
    rings: RingSpec,
) -> tuple[Tensor, LaunchReport]:
    q, k, v = (
        deploy(torch, name, deal_tokens(array, deal.table, deal.part_size), policy)
        for name, array in zip("qkv", arrays, strict=True)
    )
    out = reserve(torch, "out", q.shape, "f16", policy)
    members: dict[PeCoord, int] = {}
    neighbours: dict[PeCoord, dict[str, PeCoord]] = {}
    for lane in lanes:
        for member, pe in enumerate(lane):
            members[pe] = member
            following, previous = lane[(member + 1) % len(lane)], lane[member - 1]
            neighbours[pe] = {TO_NEXT: following, TO_PREVIOUS: previous}
    report = torch.launch(
        ring_attention_kernel, *map(LocalShard, (q, k, v, out)),
        LocalSize(k, 1), PerPe(members), deal, tiling, float(tiling.head_dim**-0.5),
        neighbours=Neighbours(neighbours, rings) if deal.num_members > 1 else None,
    ).report  # fmt: skip
    return out, report


def _path(lane: Sequence[PeCoord], deal: RingDeal, pes: tuple[PeCoord, ...]) -> Path:
    """Return the longest path: everybody else's queries see the first member's first tokens."""
    others = [pe for member, pe in enumerate(lane) if member and deal.has_tokens(member)]
    return Path(
        pes=pes,
        commands=2,  # rings come first
        all_store=len(others) + 1 == deal.num_members,
        messages=tuple((lane[0], pe) for pe in others),
    )


def _passing_ps(machine: Machine, num_lanes: int, num_bytes: int, ring: Level) -> int:
    """Return what bytes need that have to come into a member."""
    rate, fabric = num_lanes * machine.spec.cube.noc.attach_bytes_per_us, machine.spec.fabric
    if ring == "sip":
        rate = min(rate, fabric.links * fabric.bytes_per_us)
    return num_bytes * PS_PER_US // rate


def _counts(offer: Offer, values: Values) -> Changes:
    """Return a team with at least two members, where the machine has so many."""
    found = fit_team(offer, values) | fit_slot(offer, values, RINGS)
    names = ("sips", "cubes", "pes")
    team = {name: found.get(name) or values[name] or offer.count(name) for name in names}
    last = [str(level) for level in LEVELS].index(str(values["ring"]))
    members = [f"{level}s" for level in LEVELS[: last + 1]]
    if all(team[name] == 1 for name in members):
        larger = [name for name in reversed(members) if offer.count(name) > 1]
        found.update({larger[0]: 2} if larger else {})
    return found


PROGRAMS = (
    BenchProgram(
        "ring_attention",
        "attention of a prompt spread over a ring of PEs, cubes or SIPs, keys and values passed on",
        _run,
        fit=ProgramFit(
            counts=_counts,
            tiles=(("length",), ("head_dim",), ("block", "key_block")),
            sizes=(("length",),),
        ),
    ),
)
