"""Attention of one token whose keys and values are spread over PEs, cubes and SIPs.

Partial results meet on the way up a tree.
"""

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from tilewright import language as tl
from tilewright.device.ipcq import RingSpec
from tilewright.executor.neighbour import Neighbours
from tilewright.host import LocalShard, LocalSize, PeCoord, RuntimeContext
from tilewright.language.kernel import ArrayArgument
from tilewright.programs.attention import (
    HeadDim,
    QHeads,
    SoftmaxState,
    attend,
    attention_by_head,
    begin_softmax,
    end_softmax,
    heads_of,
    in_log2,
    merge_softmax,
)
from tilewright.programs.bound import Path
from tilewright.programs.contract import BenchOutcome, BenchProgram, measured, row_error
from tilewright.programs.inputs import (
    Cubes,
    Draw,
    Pes,
    Sips,
    Team,
    check_shares,
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
    fit_shares,
    fit_slot,
)
from tilewright.runtime.launch.bind import PerPe

TO_PARENT = "parent"


@dataclass(frozen=True, slots=True)
class MergePlace:
    """A program's place in the tree: children come one after the other, the nearest first."""

    num_children: int
    is_root: bool


def direction_to_child(number: int) -> str:
    """Return the direction of a program's ring to a child."""
    return f"child{number}"


def decode_merge_kernel(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, out_ptr: Any, tokens: int, place: tl.constexpr,
    kv_heads: int, group: int, head_dim: int, key_block: int, scale: float,
) -> None:  # fmt: skip
    """q and out: (kv_heads, group, head_dim); k and v: (kv_heads, tokens, head_dim), the program's
    own tokens.

    Heads go up the tree one by one: while one travels, the next is computed. Only the root has an
    ``out``.
    """
    sizes = (tokens, group, head_dim, key_block)
    state = _own(q_ptr, k_ptr, v_ptr, 0, sizes, scale)
    for head in range(kv_heads):
        is_last = head + 1 == kv_heads
        following = state if is_last else _own(q_ptr, k_ptr, v_ptr, head + 1, sizes, scale)
        state = _merged(state, place.num_children, group, head_dim)  # type: ignore[attr-defined]
        if place.is_root:  # type: ignore[attr-defined]  # a constant
            out = end_softmax(state).to(out_ptr.dtype.element_ty)
            tl.store(out_ptr + head * group * head_dim, out)
        else:
            for part in state:
                tl.send(TO_PARENT, part)
        state = following


def _own(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, head: int, sizes: tuple[int, ...], scale: float
) -> SoftmaxState:
    """Return the state of a head over the program's tokens."""
    tokens, group, head_dim, key_block = sizes
    q = tl.load(q_ptr + head * group * head_dim, shape=(group, head_dim))
    scaled = in_log2(q, scale)
    state = begin_softmax(group, head_dim)
    for first in range(0, tokens, key_block):
        shape = (min(key_block, tokens - first), head_dim)
        place = (head * tokens + first) * head_dim
        k = tl.load(k_ptr + place, shape=shape)
        v = tl.load(v_ptr + place, shape=shape)
        state = attend(state, tl.dot(scaled, tl.trans(k)), v)
    return state


def _merged(state: SoftmaxState, num_children: int, group: int, head_dim: int) -> SoftmaxState:
    """Return the state merged with those of all children, whose parts come in their order."""
    shapes = ((group,), (group,), (group, head_dim))
    coming = [
        [tl.recv_async(direction_to_child(child), shape, tl.float32) for shape in shapes]
        for child in range(num_children)
    ]
    for parts in coming:
        state = merge_softmax(state, SoftmaxState(*map(tl.wait, parts)))
    return state


@dataclass(frozen=True, slots=True)
class MergeTree:
    """Who sends its part to whom. Children are in the order in which a parent takes them."""

    root: PeCoord
    children: dict[PeCoord, list[PeCoord]]

    def place(self, pe: PeCoord) -> MergePlace:
        return MergePlace(len(self.children[pe]), is_root=pe == self.root)

    def neighbours(self) -> dict[PeCoord, dict[str, PeCoord]]:
        """Return the directions of a launch: down to each child, and up."""
        table: dict[PeCoord, dict[str, PeCoord]] = {pe: {} for pe in self.children}
        for parent, children in self.children.items():
            for number, child in enumerate(children):
                table[parent][direction_to_child(number)] = child
                table[child][TO_PARENT] = parent
        return table

    def depth(self, pe: PeCoord) -> int:
        """Return how many messages follow one another below a PE."""
        return max((1 + self.depth(child) for child in self.children[pe]), default=0)


def merge_tree(sips: tuple[int, ...], num_cubes: int, num_pes: int) -> MergeTree:
    """Plan binomial trees: over the PEs of each cube, then the cubes of each SIP, then the SIPs."""
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
    q = deploy(torch, "q", queries, team.policy())
    k, v = deploy(torch, "k", keys, team.split(1)), deploy(torch, "v", values, team.split(1))
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
    work = heads.work(team.num_pes, queries=team.num_pes, tokens=context, pairs=context, outputs=1)
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
        report,
        work,
        lambda: row_error(out.numpy(timed=False), attention_by_head(queries, keys, values)),
        path=path,
        notes=(f"{team.num_pes} PEs merge in a tree, {depth} messages deep",),
    )


def _counts(offer: Offer, values: Values) -> Changes:
    """Return shares for all PEs, and slots for the rings of the root: from children, and back."""
    levels = (offer.sips, offer.cubes, offer.pes)
    num_rings = max(1, sum((count - 1).bit_length() for count in levels))
    return fit_shares("context")(offer, values) | fit_slot(offer, values, num_rings)


PROGRAMS = (
    BenchProgram(
        "decode_merge",
        "attention of one token whose keys are spread over PEs and cubes, merged in a tree of "
        "messages",
        _run,
        fit=ProgramFit(
            counts=_counts, tiles=(("key_block",), ("head_dim",)), sizes=(("context",),)
        ),
    ),
)
