"""Routes: which links a packet takes, and its virtual channel on each.

A request goes along the row of cubes, then along the column, inside each die by its turn rule; to
another SIP it leaves by the north port of its own column of cubes and enters by the one of its
target's column. A response takes the links of its request backwards.

A virtual channel is a class of traffic and a *level* inside the class. Let a packet of a request be
on a die and its target be elsewhere. Its level there tells how far it has come:

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from tilewright.errors import InternalError, SpecError
from tilewright.machine.coords import Side
from tilewright.machine.node import Link, reverse_link
from tilewright.machine.topology.machine import HOST, Topology
from tilewright.units import flit_ps

Hop = tuple[int, int]
"""A link, and the virtual channel of the buffer behind it."""

Route = tuple[Hop, ...]


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


_LevelHops = list[tuple[int, int]]  # links with levels, before traffic picks the channel


@dataclass(frozen=True, slots=True)
class RouteTable:
    """Routes of one machine, computed at first use and kept."""

    topology: Topology
    levels: LevelScheme
    routes: dict[tuple[int, int, Traffic, int], Route] = field(default_factory=dict, repr=False)
    least_ps: dict[int, dict[int, int]] = field(default_factory=dict, repr=False, compare=False)
    """By node: the least time to every other one (``device.least_time.between_ps``)."""

    def find(self, source: int, target: int, traffic: Traffic, spread: int) -> Route:
        """Links from node to node. ``spread`` picks among parallel connections and links.

        Pass the requester's PE number, for the host the target's; a response has the same spread
        as its request.
        """
        key = (source, target, traffic, spread)
        known = self.routes.get(key)
        if known is not None:
            return known
        levels = self.levels
        if traffic is Traffic.RESPONSE:
            hops = reversed(self.request(target, source, spread))
            route = tuple(
                (reverse_link(link), levels.channel(traffic, levels.mirrored(level)))
                for link, level in hops
            )
        else:
            route = tuple(
                (link, levels.channel(traffic, level))
                for link, level in self.request(source, target, spread)
            )
        self.routes[key] = route
        return route

    def request(self, source: int, target: int, spread: int) -> tuple[tuple[int, int], ...]:
        """Links with levels, from a node that may request to any terminal."""
        self._check(source, target, spread)
        topology = self.topology
        hops: _LevelHops = []
        at, goal = source, target
        if source == HOST:
            sip = self._sip_of(target)
            hops.append((topology.host_links[sip], self.levels.moving[Side.SOUTH]))
            at = topology.endpoints[sip]
        if target == HOST:
            goal = topology.endpoints[self._sip_of(source)]
        self._travel(hops, at, goal, spread)
        if target == HOST:
            link = reverse_link(topology.host_links[self._sip_of(source)])
            hops.append((link, self.levels.moving[Side.NORTH]))
        return tuple(hops)

    def _check(self, source: int, target: int, spread: int) -> None:
        nodes = self.topology.nodes
        for node in (source, target):
            if type(node) is not int or not 0 <= node < len(nodes):
                raise SpecError("route", f"node {node!r}", "a node's number", "use machine.node_id")
        what = f"route from {nodes[source].name} to {nodes[target].name}"
        if source == target:
            raise SpecError(what, "one node", "two different ones", "nothing has to be sent")
        if not nodes[source].kind.may_request:
            fix = "start at a DMA, a processor or the host"
            raise SpecError(what, f"a request by {nodes[source].kind.value}", "a requester", fix)
        if not nodes[target].kind.is_terminal:
            fix = "end at a memory, a DMA, a processor or the host"
            raise SpecError(what, f"{nodes[target].kind.value} as target", "a terminal", fix)
        if type(spread) is not int or spread < 0:
            fix = "pass the requester's PE number"
            raise SpecError(what, f"spread {spread!r}", "an int of at least 0", fix)

    def _sip_of(self, node: int) -> int:
        where = self.topology.nodes[node].where
        if where is None:
            name = self.topology.nodes[node].name
            raise InternalError("route", name, "a node of a SIP", "report this")
        return where.sip

    def _cube_of(self, node: int) -> int:
        cube = self.topology.cube_of(node)
        if cube is None:
            name = self.topology.nodes[node].name
            raise InternalError("route", name, "a node of a cube", "report this")
        return cube

    def _travel(self, hops: _LevelHops, at: int, goal: int, spread: int) -> None:
        topology = self.topology
        cube, goal_cube = topology.cube_of(at), topology.cube_of(goal)
        source_sip, target_sip = self._sip_of(at), self._sip_of(goal)
        if cube is not None and goal_cube is not None and source_sip == target_sip:
            at = self._cross_mesh(hops, at, goal, spread)
            self._through(hops, goal_cube, at, goal, self.levels.last)
            return
        level = self.levels.moving[Side.SOUTH]
        if cube is not None:
            row = topology.grid.cell(topology.grid.cube_coord(cube))[1]
            for _ in range(row + 1):  # north along the column of cubes, to the IO chiplet
                at = self._leave(hops, at, Side.NORTH, spread)
            level = self.levels.moving[Side.NORTH]
        for step in topology.fabric.steps(source_sip, target_sip, spread):
            self._through_io(hops, at, step.out_port, (level, step.level))
            hops += ((wire, step.level) for wire in step.wires)
            at, level = step.in_port, step.level
        if goal_cube is None:
            self._through_io(hops, at, goal, (level, self.levels.moving[Side.NORTH]))
        else:
            at = self._descend(hops, at, goal, level, spread)
            self._through(hops, goal_cube, at, goal, self.levels.last)

    def _through_io(self, hops: _LevelHops, one: int, other: int, levels: tuple[int, int]) -> None:
        """Over the crossbar of an IO chiplet; its two links may differ in level."""
        inward = self.topology.chiplets[self._sip_of(one)].inward
        hops.append((inward[one], levels[0]))
        hops.append((reverse_link(inward[other]), levels[1]))

    def _descend(self, hops: _LevelHops, at: int, goal: int, level: int, spread: int) -> int:
        """From a node of the IO chiplet south along the column of cubes, onto the goal's die."""
        topology, grid = self.topology, self.topology.grid
        coord = grid.cube_coord(self._cube_of(goal))
        column, row = grid.cell(coord)
        index = spread % topology.num_connections
        south = self.levels.moving[Side.SOUTH]
        connection = topology.chiplets[coord.sip].connections[column][index]
        self._through_io(hops, at, connection, (level, south))
        top = grid.flat_cube(grid.cube_in_cell(coord.sip, column, 0))
        crossing = reverse_link(topology.crossings[top, Side.NORTH][index])
        hops.append((crossing, south))
        at = topology.links[crossing].dst
        for _ in range(row):
            at = self._leave(hops, at, Side.SOUTH, spread)
        return at

    def _cross_mesh(self, hops: _LevelHops, at: int, goal: int, spread: int) -> int:
        """Along the row of cubes, then along the column, onto the goal's die."""
        grid = self.topology.grid
        column, row = grid.cell(grid.cube_coord(self._cube_of(at)))
        goal_column, goal_row = grid.cell(grid.cube_coord(self._cube_of(goal)))
        along_row = Side.EAST if goal_column > column else Side.WEST
        along_column = Side.SOUTH if goal_row > row else Side.NORTH
        sides = [along_row] * abs(goal_column - column) + [along_column] * abs(goal_row - row)
        for side in sides:
            at = self._leave(hops, at, side, spread)
        return at

    def _leave(self, hops: _LevelHops, at: int, side: Side, spread: int) -> int:
        """Through the die to a connection of one side and across; returns the facing one."""
        topology = self.topology
        cube = self._cube_of(at)
        index = spread % topology.num_connections
        level = self.levels.moving[side]
        connection = topology.node_base[cube] + topology.die.connections[side][index]
        self._through(hops, cube, at, connection, level)
        crossing = topology.crossings[cube, side][index]
        hops.append((crossing, level))
        return topology.links[crossing].dst

    def _through(self, hops: _LevelHops, cube: int, one: int, other: int, level: int) -> None:
        """Through a die, from node to node."""
        base, first = self.topology.link_base[cube], self.topology.node_base[cube]
        leg = self.topology.die.leg(one - first, other - first)
        hops += ((base + link, level + sublevel) for link, sublevel in leg)


def zero_load_ps(links: Iterable[Link], *, num_flits: int, flit_bytes: int) -> int:
    """From entering the first link to delivery behind the last one (``docs/engine.md`` section 2).

    Without re-assembly this is the sum of flit times and latencies plus the other flits at the
    slowest link.
    """
    head_ps = tail_ps = 0
    for link in links:
        cycle_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=link.bytes_per_us)
        start_ps = tail_ps if link.reassemble else head_ps
        leaves_ps = max(start_ps + num_flits * cycle_ps, tail_ps + cycle_ps)
        head_ps = start_ps + cycle_ps + link.latency_ps
        tail_ps = leaves_ps + link.latency_ps
    return tail_ps
