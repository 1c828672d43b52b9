"""Attention of one token whose keys and values are spread over PEs, cubes and SIPs."""

from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np

from tilewright.device.ipcq import RingSpec
from tilewright.executor.neighbour import Neighbours
from tilewright.host import LaunchReport, LocalShard, LocalSize, PeCoord, RuntimeContext, Tensor
from tilewright.language.kernel import ArrayArgument
from tilewright.programs.attention_reference import attention
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw
from tilewright.programs.fit import (
    Changes,
    Offer,
    ProgramFit,
    Slot,
    Values,
    fit_shares,
    fit_slot,
)
from tilewright.programs.heads import HeadDim, Heads, QHeads, heads_of
from tilewright.programs.kernels.decode_merge import (
    TO_PARENT,
    MergePlace,
    decode_merge_kernel,
    direction_to_child,
)
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_shares, check_sizes
from tilewright.programs.team import (
    Array,
    Cubes,
    Pes,
    Sips,
    Team,
    deploy,
    reserve,
    team_of,
)
from tilewright.runtime.launch.bind import PerPe


@dataclass(frozen=True, slots=True)
class MergeTree:
    """Who sends its part to whom. Children are in the order in which a parent takes them."""

    root: PeCoord
    children: dict[PeCoord, list[PeCoord]]

    def place(self, pe: PeCoord) -> MergePlace:
        return MergePlace(len(self.children[pe]), is_root=pe == self.root)

    def neighbours(self) -> dict[PeCoord, dict[str, PeCoord]]:
        """Directions of a launch: down to each child, and up."""
        table: dict[PeCoord, dict[str, PeCoord]] = {pe: {} for pe in self.children}
        for parent, children in self.children.items():
            for number, child in enumerate(children):
                table[parent][direction_to_child(number)] = child
                table[child][TO_PARENT] = parent
        return table

    def depth(self, pe: PeCoord) -> int:
        """Messages that follow one another below a PE."""
        return max((1 + self.depth(child) for child in self.children[pe]), default=0)


def merge_tree(sips: tuple[int, ...], num_cubes: int, num_pes: int) -> MergeTree:
    """Binomial trees: over the PEs of each cube, then the cubes of each SIP, then the SIPs."""
    levels = (
        [[PeCoord(sip, cube, pe) for pe in range(num_pes)]
         for sip, cube in product(sips, range(num_cubes))],
        [[PeCoord(sip, cube, 0) for cube in range(num_cubes)] for sip in sips],
        [[PeCoord(sip, 0, 0) for sip in sips]],
    )  # fmt: skip
    children: dict[PeCoord, list[PeCoord]] = {pe: [] for members in levels[0] for pe in members}
    for members in (members for level in levels for members in level):
        for number, member in enumerate(members[1:], start=1):
            children[members[number & (number - 1)]].append(member)  # without its lowest bit
    for parent, below in children.items():
        below.sort(key=lambda pe: (pe.sip != parent.sip, pe.cube != parent.cube, pe))
    return MergeTree(PeCoord(sips[0], 0, 0), children)


def _run(
    torch: RuntimeContext,
    context: Annotated[int, "tokens whose keys and values are there"] = 16_384,
    q_heads: QHeads = 32,
    kv_heads: Annotated[int, "key-value heads; every PE has all of them"] = 8,
    head_dim: HeadDim = 128,
    key_block: Annotated[int, "keys that are loaded at a time"] = 128,
    slot: Slot = 4096,
    sips: Sips = 1,
    cubes: Cubes = 4,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("decode_merge", context=context, key_block=key_block, slot=slot)
    heads = heads_of("decode_merge", q_heads, kv_heads, head_dim)
    team = team_of(torch, sips=sips, cubes=cubes, pes=pes)
    check_shares("decode_merge", team, context=context)
    tree = merge_tree(
        tuple(torch.device.sips[: team.num_sips]), team.num_cubes, team.num_pes_per_cube
    )
    draw = Draw(torch)
    queries = draw.normal((heads.kv, heads.group, heads.dim), "f16")
    keys, values = (draw.normal((heads.kv, context, heads.dim), "f16") for _ in range(2))
    out, report = _launch(torch, team, tree, heads, (queries, keys, values), key_block, slot)
    work = Work(
        num_pes=team.num_pes,
        read_bytes=team.num_pes * heads.query_bytes + context * heads.token_bytes,
        written_bytes=heads.query_bytes,
        flop={"f16": heads.flop(context)},
        elements=heads.elements(context),
    )
    depth = tree.depth(tree.root)
    last = max(tree.children)
    path = Path(
        pes=report.pes,
        commands=1 if last == tree.root else 2,  # rings come first
        all_store=False,
        messages=() if last == tree.root else ((last, tree.root),),
    )
    return measured(
        torch,
        (report,),
        bound_of(torch.machine, work, path),
        error=lambda: row_error(out.numpy(timed=False), _expected(queries, keys, values)),
        tolerance=tolerance_of("f16"),
        notes=(f"{team.num_pes} PEs merge in a tree, {depth} messages deep",),
    )


def _launch(
    torch: RuntimeContext,
    team: Team,
    tree: MergeTree,
    heads: Heads,
    arrays: tuple[Array, Array, Array],
    key_block: int,
    slot: int,
) -> tuple[Tensor, LaunchReport]:
    queries, keys, values = arrays
    q = deploy(torch, "q", queries, team.policy())
    k, v = (
        deploy(torch, name, array, team.split(1)) for name, array in (("k", keys), ("v", values))
    )
    out = reserve(torch, "out", queries.shape, "f16", Team(1, 1, 1).policy())
    at_root = ArrayArgument(out.address + out.placement.local_offset(tree.root), out.dtype)
    outs = {pe: at_root if pe == tree.root else None for pe in tree.children}
    places = {pe: tree.place(pe) for pe in tree.children}
    rings = Neighbours(tree.neighbours(), RingSpec(slot_bytes=slot))
    report = torch.launch(
        decode_merge_kernel, *map(LocalShard, (q, k, v)), PerPe(outs), LocalSize(k, 1),
        PerPe(places), heads.kv, heads.group, heads.dim, key_block, heads.scale,
        neighbours=rings if len(tree.children) > 1 else None,
    ).report  # fmt: skip
    return out, report


def _expected(queries: Array, keys: Array, values: Array) -> Array:
    return np.stack([attention(*row) for row in zip(queries, keys, values, strict=True)])


def _counts(offer: Offer, values: Values) -> Changes:
    """Return shares for all PEs, and slots for the rings of the root: from children, and back."""
    levels = (offer.sips, offer.cubes, offer.pes)
    num_rings = max(1, sum((count - 1).bit_length() for count in levels))
    return fit_shares("context")(offer, values) | fit_slot(offer, values, num_rings)


DECODE_MERGE = BenchProgram(
    "decode_merge",
    "attention of one token whose keys are spread over PEs and cubes, merged in a tree of messages",
    _run,
    fit=ProgramFit(counts=_counts, tiles=(("key_block",), ("head_dim",)), sizes=(("context",),)),
)
