"""Virtual channels: the class of traffic, and the level inside the class.

Let a packet of a request be on a die and its target be elsewhere. Its level there tells how far it
has come:

- *row*: the die is not in the target's column of cubes; the packet moves east or west;
- *column*: it is; the packet moves north or south. Between two SIPs, and to or from an IO chiplet,
  the packet's own column counts, so it is at this level at once;
- *last*: the die is the target's.

Levels only grow. At the row level packets that move east never meet channels of packets that move
west, and so for the column level: in a mesh they use other wires, in a ring they get other levels.
The last level never leaves its die. Two levels would not do: packets that turn into a column and
packets that have arrived both use rows of routers, in opposite order (a test shows the cycle).

On links of the SIP fabric the level is the dateline's, 0 or 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from tilewright.machine.coords import Side


class Traffic(Enum):
    """Classes that never wait for each other's buffers."""

    REQUEST = 0
    RESPONSE = 1
    COMMUNICATION = 2


@dataclass(frozen=True, slots=True)
class LevelScheme:
    """Levels of one class; a network with a dateline has two sublevels of each."""

    moving: Mapping[Side, int]
    last: int
    num_levels: int

    @property
    def num_virtual_channels(self) -> int:
        return self.num_levels * len(Traffic)

    def channel(self, traffic: Traffic, level: int) -> int:
        """The virtual channel, packed densely: all levels of a class, then the next class."""
        return traffic.value * self.num_levels + level

    def mirrored(self, level: int) -> int:
        """The level of a response on the reverse of a request's link."""
        return self.num_levels - 1 - level


def plan_levels(num_sublevels: int) -> LevelScheme:
    """Row, column and last; with a dateline, every direction has its own level and sublevels."""
    if num_sublevels == 1:
        moving = {Side.EAST: 0, Side.WEST: 0, Side.NORTH: 1, Side.SOUTH: 1}
        return LevelScheme(MappingProxyType(moving), last=2, num_levels=3)
    order = (Side.EAST, Side.WEST, Side.NORTH, Side.SOUTH)
    bases = {side: number * num_sublevels for number, side in enumerate(order)}
    last = len(order) * num_sublevels
    return LevelScheme(MappingProxyType(bases), last=last, num_levels=last + num_sublevels)
