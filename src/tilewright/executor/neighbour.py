"""Directions of PEs: whom each leads to, how rings are called at both ends, where they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tilewright.device.ipcq import RingSpec
from tilewright.errors import KernelError
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name

Place = tuple[PeCoord, str]
"""A PE and one of its directions."""

_COMPASS = {"N": "S", "S": "N", "E": "W", "W": "E"}
_CHILDREN = ("child_left", "child_right")
OPPOSITES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{name: (back,) for name, back in _COMPASS.items()},
        **{f"global_{name}": (f"global_{back}",) for name, back in _COMPASS.items()},
        **dict.fromkeys(_CHILDREN, ("parent",)),
        "parent": _CHILDREN,
    }
)
"""By direction: the names that its way back may have."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Directions by name: for each PE, which PE is there.

    ``addresses`` are those of rings in SRAM and HBM, by receiver. ``aliases`` are further names:
    by PE, from a name to the direction that it sends by. A PE has at most one for each peer, and
    two PEs that have one for each other mean the same two rings by it.
    """

    table: Mapping[PeCoord, Mapping[str, PeCoord]]
    ring: RingSpec = field(default_factory=RingSpec)
    addresses: Mapping[Place, int] = field(default_factory=dict)
    aliases: Mapping[PeCoord, Mapping[str, str]] = field(default_factory=dict)

    def arrives_at(self, sender: PeCoord, direction: str) -> Place:
        """Return the receiver and its own name for the way back, the opposite one if it has that.

        With two PEs in a ring east and west both lead to the same peer: what leaves to the east
        has to come from the west. Raises KernelError if there is no way back, or more than one.
        """
        peer = self.table[sender][direction]
        back = [name for name, other in self.table.get(peer, {}).items() if other == sender]
        exact = [name for name in OPPOSITES.get(direction, ()) if name in back]
        if len(exact) == 1:
            return peer, exact[0]
        if len(back) == 1:
            return peer, back[0]
        where = f"neighbours of {place_name(sender)}"
        found = f"{direction!r} to {place_name(peer)}, which comes back by {back or 'no direction'}"
        fix = "name the way back in the peer's directions"
        raise KernelError(where, found, "one way back", fix)
