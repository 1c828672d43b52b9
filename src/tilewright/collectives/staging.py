"""Tensors that ranks hold alike: their own, or copies that are placed as the first rank's are."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilewright.collectives.buffers import Buffers, Piece, Pieces
from tilewright.collectives.group import Group, targets_of
from tilewright.collectives.operation import Call
from tilewright.errors import CollectiveError
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.placement.policy import Box, DPPolicy, LayoutWord, Split
from tilewright.runtime.tensor.tensor import Tensor

SPREAD = DPPolicy(cube=Split(0), pe=Split(0))


@dataclass(frozen=True, slots=True)
class LaneShare:
    """What a lane has of a piece: a box of it, from an element of the PE's shard on."""

    lane: int
    box: Box  # of the piece
    start: int

    @property
    def size(self) -> int:
        """Elements."""
        return prod(map(len, self.box))


@dataclass(frozen=True, slots=True)
class Layout:
    """How the pieces of a call lie on the PEs of a rank; boxes by lane.

    The pieces of an all-to-all have different numbers of rows: their first axis is left out.
    """

    shape: tuple[int, ...]
    boxes: tuple[tuple[int, Box], ...]
    policy: DPPolicy = field(compare=False)  # by which copies lie so, too
    has_any_rows: bool = False


def shares_of(group: Group, rank: int, piece: Piece) -> tuple[LaneShare, ...] | None:
    """By lane, if the rank's shards are boxes of the piece; else None."""
    tensor, rows = piece.tensor, piece.rows
    if tensor.is_host:
        return None
    shares = []
    for lane, pe in enumerate(group.ranks[rank]):
        if not tensor.placement.has_shard(pe):
            continue
        shard = tensor.placement.shard_of(pe)
        if not shard.is_whole:
            return None
        if rows is None:
            shares.append(LaneShare(lane, shard.box, 0))
        elif len(shard.box[0]) != tensor.shape[0]:
            return None
        else:
            tail = shard.box[1:]
            box = tail if piece.is_stacked else (range(len(rows)), *tail)
            shares.append(LaneShare(lane, box, rows.start * prod(map(len, tail))))
    return tuple(shares)


def layout_of(group: Group, rank: int, call: Call, buffers: Buffers) -> Layout | None:
    """That of all pieces, if they lie alike in shards of the rank; else None."""
    # whole tensors first: by the policy of a pile its parts would not lie as they do
    pieces = sorted(buffers.pieces, key=lambda piece: piece.rows is not None)
    layouts = dict.fromkeys(
        _layout(group, rank, piece, has_any_rows=call.is_uneven) for piece in pieces if piece.size
    )
    return next(iter(layouts)) if len(layouts) == 1 else None


def _layout(group: Group, rank: int, piece: Piece, *, has_any_rows: bool) -> Layout | None:
    shares = shares_of(group, rank, piece)
    if shares is None:
        return None
    boxes = {share.box for share in shares}  # copies count once
    if sum(prod(map(len, box)) for box in boxes) != piece.size:
        return None  # the rank does not have all of it
    shape, policy = piece.shape, piece.tensor.placement.policy
    if not has_any_rows:
        return Layout(shape, tuple((share.lane, share.box) for share in shares), policy)
    if not shape or (len(group.ranks[rank]) > 1 and _splits_rows(policy, len(shape))):
        return None
    tails = tuple((share.lane, share.box[1:]) for share in shares)
    return Layout(shape[1:], tails, policy, has_any_rows=True)


def _splits_rows(policy: DPPolicy, num_axes: int) -> bool:
    """Whether it depends on the number of rows who has which."""
    word = LayoutWord.ROW_WISE if num_axes > 1 else LayoutWord.COLUMN_WISE
    return any(
        level.layout.axis % num_axes == 0
        if isinstance(level.layout, Split)
        else level.layout == word
        for level in policy.levels
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """Buffers to run on, and what has to be copied back at the end."""

    buffers: Buffers
    copies: tuple[tuple[Piece, Tensor], ...] = ()
    written: tuple[Piece, ...] = ()

    def finish(self) -> None:
        """Bring results to where they belong, and free the copies."""
        copy_of = dict(self.copies)
        for tensor in dict.fromkeys(piece.tensor for piece in self.written):
            pieces = [piece for piece in self.written if piece.tensor is tensor]
            _write_back(tensor, [(piece, copy_of[piece]) for piece in pieces])
        for copy in copy_of.values():
            copy.free()


def stage(
    tensors: Deployments,
    group: Group,
    rank: int,
    buffers: Buffers,
    mine: Layout | None,
    agreed: Layout | None,
) -> Stage:
    """The rank's own tensors where they lie as agreed; else copies that do, through the host."""
    if agreed is not None and mine == agreed:
        return Stage(buffers)
    copies: dict[Piece, Tensor] = {}
    for piece in buffers.pieces:
        if piece not in copies:
            copies[piece] = _copy(tensors, group, rank, piece, agreed)
    _fill({piece: copies[piece] for piece in buffers.sources if piece is not None})

    def copied(pieces: Pieces) -> Pieces:
        return tuple(None if piece is None else Piece(copies[piece]) for piece in pieces)

    written = tuple(dict.fromkeys(piece for piece in buffers.targets if piece is not None))
    staged = Buffers(copied(buffers.sources), copied(buffers.targets))
    return Stage(staged, tuple(copies.items()), written)


def _copy(
    tensors: Deployments, group: Group, rank: int, piece: Piece, agreed: Layout | None
) -> Tensor:
    """Memory for a piece that lies as agreed, or spread over the PEs of the rank."""
    name = f"{piece.tensor.name} of rank {group.world_ranks[rank]}"
    shape = (piece.size,) if agreed is None else agreed.shape
    if agreed is not None and agreed.has_any_rows:
        shape = (piece.size // max(1, prod(shape)), *shape)
    policy = SPREAD if agreed is None else agreed.policy
    targets = targets_of(group.ranks[rank])
    copy = tensors.empty(shape, piece.tensor.dtype, dp=policy, name=name, targets=targets)
    if piece.tensor.has_values and not copy.has_values:
        found = f"tensor {piece.tensor.name!r} on the host, in a context without data"
        fix = "place it in the machine, or make the context with data=True"
        raise CollectiveError(group.name, found, "floats without values", fix)
    if agreed is not None and piece.size:
        made = _layout(group, rank, Piece(copy), has_any_rows=agreed.has_any_rows)
        if made != agreed:
            found = f"a tensor that rank {group.world_ranks[rank]} cannot place as the others do"
            fix = "place the tensors of all ranks by one policy"
            raise CollectiveError(group.name, found, "tensors that are placed alike", fix)
    return copy


def _fill(copies: dict[Piece, Tensor]) -> None:
    """Each tensor is read once, whatever pieces of it are needed."""
    for tensor in dict.fromkeys(piece.tensor for piece in copies):
        values = tensor.numpy().reshape(-1) if tensor.has_values else None
        for piece, copy in copies.items():
            if piece.tensor is not tensor:
                continue
            if values is not None:
                copy.copy_(values[piece.elements].reshape(copy.shape))
            else:
                copy.copy_(tensor if tensor.shape == copy.shape else _nothing(copy))


def _write_back(tensor: Tensor, parts: list[tuple[Piece, Tensor]]) -> None:
    has_values = tensor.has_values and all(copy.has_values for _, copy in parts)
    if not has_values and parts[0][1].shape == tensor.shape:
        tensor.copy_(parts[0][1])
        return
    covers = sum(piece.size for piece, _ in parts) == tensor.numel()
    values = _nothing(tensor) if covers or not has_values else tensor.numpy()
    flat = values.reshape(-1)
    if has_values:
        for piece, copy in parts:
            flat[piece.elements] = copy.numpy().reshape(-1)
    tensor.copy_(flat.reshape(tensor.shape))


def _nothing(tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """In a run for time alone values only have a size."""
    return np.zeros(tensor.shape, tensor.dtype.storage)


def owner_lanes(layout: Layout | None, num_lanes: int) -> frozenset[int]:
    """The lanes that exchange: of copies the first, unless some elements have more than others."""
    return frozenset(copies[0] for copies in _copies(layout)) or frozenset(range(num_lanes))


def copy_group(group: Group, rank: int, layout: Layout | None) -> Group | None:
    """The copies of a rank as ranks, the first of them those that exchange; None without copies."""
    lanes = _copies(layout)
    if not lanes:
        return None
    pes = group.ranks[rank]
    places = tuple(tuple(pes[lane] for lane in copies) for copies in zip(*lanes, strict=True))
    name = f"the copies of rank {group.world_ranks[rank]} in {group.name}"
    return Group(name, places, tuple(range(len(places))))


def _copies(layout: Layout | None) -> list[list[int]]:
    """Return the lanes of each box, if all have as many copies; nothing without copies."""
    lanes: dict[Box, list[int]] = {}
    for lane, box in () if layout is None else layout.boxes:
        lanes.setdefault(box, []).append(lane)
    counts = {len(of_box) for of_box in lanes.values()}
    return list(lanes.values()) if len(counts) == 1 and 1 not in counts else []
