"""Attention of a prompt over a ring: each member has a block of it, keys and values travel."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Literal

import numpy as np

from tilewright.device.ipcq import RingSpec
from tilewright.errors import BenchError
from tilewright.executor.neighbour import Neighbours
from tilewright.host import (
    LaunchReport,
    LocalShard,
    LocalSize,
    PeCoord,
    RuntimeContext,
    Split,
    Tensor,
)
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
from tilewright.programs.check import measured, row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
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
from tilewright.programs.latency import Path
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
    _check_members(team, ring, team_of(torch, sips=0, cubes=0))
    deal = RingDeal(length, _num_members(team, ring), order)
    draw = Draw(torch)
    queries = draw.normal((heads.kv, heads.group, length, heads.dim), "f16")
    keys, values = (draw.normal((heads.kv, 1, length, heads.dim), "f16") for _ in range(2))
    window = torch.machine.spec.pe.queue_commands
    tiling = RingTiling(heads.group, heads.dim, block, key_block, causal, window)
    out, report = _launch(torch, team, ring, deal, heads, (queries, keys, values), tiling, slot)
    path, passing = _passing(torch, team, ring, heads, deal, report.pes, causal=causal)
    pairs = num_pairs(length, causal=causal)
    table = deal.table
    return measured(
        torch,
        report,
        heads.work(team.num_pes, queries=length, tokens=length, pairs=pairs),
        lambda: row_error(
            collect_tokens(out.numpy(timed=False), table, length),
            attention_by_head(queries, keys[:, 0], values[:, 0], causal=causal),
        ),
        tolerance=tolerance_of("f16"),
        path=path,
        messages=passing,
        notes=(_note(heads, team, ring, deal),),
    )


def _is_member_level(level: Level, ring: Level) -> bool:
    return LEVELS.index(level) <= LEVELS.index(ring)


def _num_members(team: Team, ring: Level) -> int:
    counts = {"sip": team.num_sips, "cube": team.num_cubes, "pe": team.num_pes_per_cube}
    return int(np.prod([counts[level] for level in LEVELS if _is_member_level(level, ring)]))


def _fitted(team: Team, ring: Level, heads: Heads) -> Team:
    """The PEs of a member share its KV heads; no more of them take part than there are heads."""
    if ring != "pe":
        num_cubes = team.num_cubes if ring == "sip" else 1
        team = team.at_most(pes=max(1, heads.kv // num_cubes))
        if num_cubes > heads.kv:
            found = f"{heads.kv} KV heads for the {num_cubes} cubes of a SIP"
            fix = "set cubes lower, or kv_heads higher"
            raise BenchError("ring_attention", found, "at least one for each", fix)
    return team


def _check_members(team: Team, ring: Level, everything: Team) -> None:
    """Refuse a ring of one, unless the device has one PE: there is nothing to pass on then."""
    if _num_members(team, ring) < 2 and everything.num_pes > 1:
        found, fix = f"a ring of one {ring}", f"set {ring}s=0 for all there are, or another ring"
        raise BenchError("ring_attention", found, "at least two members", fix)


def _lanes(torch: RuntimeContext, team: Team, ring: Level) -> Iterator[list[PeCoord]]:
    """The PEs that have the same heads, in the order of their members."""
    counts = {
        "sip": torch.device.sips[: team.num_sips],
        "cube": range(team.num_cubes),
        "pe": range(team.num_pes_per_cube),
    }
    upper = [counts[level] for level in LEVELS if _is_member_level(level, ring)]
    lower = [counts[level] for level in LEVELS if not _is_member_level(level, ring)]
    for lane in product(*lower):
        yield [PeCoord(*member, *lane) for member in product(*upper)]


def _launch(
    torch: RuntimeContext,
    team: Team,
    ring: Level,
    deal: RingDeal,
    heads: Heads,
    arrays: tuple[Array, Array, Array],
    tiling: RingTiling,
    slot: int,
) -> tuple[Tensor, LaunchReport]:
    axes = [Split(0) if _is_member_level(level, ring) else Split(1) for level in LEVELS]
    policy = team.policy(*axes)
    q, k, v = (
        deploy(torch, name, deal_tokens(array, deal.table, deal.part_size), policy)
        for name, array in zip("qkv", arrays, strict=True)
    )
    out = reserve(torch, "out", q.shape, "f16", policy)
    members: dict[PeCoord, int] = {}
    neighbours: dict[PeCoord, dict[str, PeCoord]] = {}
    for lane in _lanes(torch, team, ring):
        for member, pe in enumerate(lane):
            members[pe] = member
            following, previous = lane[(member + 1) % len(lane)], lane[member - 1]
            neighbours[pe] = {TO_NEXT: following, TO_PREVIOUS: previous}
    rings = Neighbours(neighbours, RingSpec(slot_bytes=slot))
    report = torch.launch(
        ring_attention_kernel, *map(LocalShard, (q, k, v, out)),
        LocalSize(k, 1), PerPe(members), deal, tiling, heads.scale,
        neighbours=rings if deal.num_members > 1 else None,
    ).report  # fmt: skip
    return out, report


def _passing(
    torch: RuntimeContext,
    team: Team,
    ring: Level,
    heads: Heads,
    deal: RingDeal,
    pes: tuple[PeCoord, ...],
    *,
    causal: bool,
) -> tuple[Path, dict[str, tuple[int, int]]]:
    """Return the longest path, and what has to come into the member that sees most.

    The first tokens are the first member's, and everybody else's queries see them.
    """
    spec = torch.machine.spec
    lane = next(_lanes(torch, team, ring))
    others = [pe for member, pe in enumerate(lane) if member and deal.has_tokens(member)]
    path = Path(
        pes=pes,
        commands=2,  # rings come first
        all_store=len(others) + 1 == deal.num_members,
        messages=tuple((lane[0], pe) for pe in others),
    )
    num_lanes = team.num_pes // deal.num_members
    received_bytes = deal.num_received(causal=causal) * heads.token_bytes
    rate = num_lanes * spec.cube.noc.attach_bytes_per_us
    if ring == "sip":
        rate = min(rate, spec.fabric.links * spec.fabric.bytes_per_us)
    return path, {"passing keys and values": (received_bytes * PS_PER_US // rate, 0)}


def _note(heads: Heads, team: Team, ring: Level, deal: RingDeal) -> str:
    sent_bytes = (deal.num_members - 1) * deal.num_parts * deal.part_size * heads.token_bytes
    num_lanes = team.num_pes // deal.num_members
    return (
        f"a ring of {deal.num_members} {NAMES[ring]}; each PE passes on about "
        f"{sent_bytes // num_lanes} bytes of keys and values while it computes"
    )


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
