"""PEs of a rank that have copies of the same elements: one exchanges them, and tells the others."""

from collections.abc import Sequence

from tilewright.collectives.group import Group
from tilewright.collectives.staging import Layout
from tilewright.runtime.placement.divide import Box


def owner_lanes(layout: Layout | None, num_lanes: int) -> frozenset[int]:
    """The lanes that exchange: of copies the first, unless some elements have more than others."""
    lanes = _lanes_of_boxes(layout)
    if not _is_copied(lanes):
        return frozenset(range(num_lanes))
    return frozenset(of_box[0] for of_box in lanes)


def copy_group(group: Group, rank: int, layout: Layout | None) -> Group | None:
    """The copies of a rank as ranks, the first of them those that exchange; None without copies."""
    lanes = _lanes_of_boxes(layout)
    if not _is_copied(lanes):
        return None
    pes = group.ranks[rank]
    places = tuple(tuple(pes[lane] for lane in copies) for copies in zip(*lanes, strict=True))
    name = f"the copies of rank {group.world_ranks[rank]} in {group.name}"
    return Group(name, places, tuple(range(len(places))))


def _lanes_of_boxes(layout: Layout | None) -> list[list[int]]:
    lanes: dict[Box, list[int]] = {}
    for lane, box in () if layout is None else layout.boxes:
        lanes.setdefault(box, []).append(lane)
    return list(lanes.values())


def _is_copied(lanes: Sequence[Sequence[int]]) -> bool:
    return len({len(of_box) for of_box in lanes}) == 1 and len(lanes[0]) > 1
