"""Proof that no cycle of waiting packets can arise: the channel dependency graph has no cycle.

A packet in the buffer behind link ``i`` waits for room behind link ``i + 1`` of its route. If the
graph of these waits over all (link, level) pairs has no cycle, someone can always move. Levels of a
request stand for all three classes of traffic: classes share no channel, communication has the
edges of requests on its own channels, and responses have them reversed.

**Why the graph is complete.** A request is a chain of *legs*: through a die from where it enters to
where it leaves or ends, through an IO chiplet, across the fabric. Two links that follow each other
are neighbours inside a leg or meet where two legs join. A leg through a cube depends on its ends
and on its level, and on nothing else of the route, so the legs of a die follow from which of its
sides have neighbours; they are listed once per such case for the template and shifted to every cube
of that case. Joints are listed for every wire between dies. A test compares the result with all
routes of small machines, one by one.
"""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product
from math import lcm

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SpecError
from tilewright.machine.coords import Side
from tilewright.machine.node import reverse_link
from tilewright.machine.route import RouteTable

EdgeArray = NDArray[np.int64]
"""One row for each edge: who waits, and for whom."""

Channel = tuple[int, int]
"""A link and a level (or any other number of its virtual channel)."""

Edge = tuple[Channel, Channel]

# By which sides a packet that leaves by a side may have come: straight on, or from row to column.
_ENTRIES = {
    Side.EAST: (Side.WEST,),
    Side.WEST: (Side.EAST,),
    Side.NORTH: (Side.SOUTH, Side.EAST, Side.WEST),
    Side.SOUTH: (Side.NORTH, Side.EAST, Side.WEST),
}


def find_cycle(edges: EdgeArray, num_channels: int) -> list[int]:
    """A cycle of channels, or nothing. Channels that wait for nobody are taken away in rounds."""
    waits = np.bincount(edges[:, 0], minlength=num_channels)
    order = np.argsort(edges[:, 1], kind="stable")
    waiting, awaited = edges[order, 0], edges[order, 1]
    first = np.searchsorted(awaited, np.arange(num_channels + 1))
    done = np.flatnonzero(waits == 0)
    while done.size:
        counts = first[done + 1] - first[done]
        offsets = np.repeat(first[done] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        freed = waiting[offsets + np.arange(int(counts.sum()))]
        np.subtract.at(waits, freed, 1)
        candidates = np.unique(freed)
        done = candidates[waits[candidates] == 0]
    if not waits.any():
        return []
    return _walk_cycle(edges[(waits[edges[:, 0]] > 0) & (waits[edges[:, 1]] > 0)])


def _walk_cycle(edges: EdgeArray) -> list[int]:
    """Every channel left waits for another one that is left: walk until one comes again."""
    following = {int(one): int(other) for one, other in edges[::-1]}
    at = min(following)
    path: list[int] = []
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = following[at]
    return path[seen[at] :]


def check_no_deadlock(routes: RouteTable) -> None:
    """Refuse a machine whose routes could wait for each other in a circle."""
    nodes, links = routes.topology.nodes, routes.topology.links
    num_levels = routes.levels.num_levels
    cycle = find_cycle(dependency_edges(routes), num_levels * len(links))
    if cycle:
        waits = [(links[key // num_levels], key % num_levels) for key in cycle]
        found = "a cycle of waiting packets: " + "; ".join(
            f"{nodes[link.src].name} -> {nodes[link.dst].name} level {level}"
            for link, level in waits
        )
        fix = "change the shape of the network, or its turn rule"
        raise SpecError("routing", found, "channels that never wait in a circle", fix)


def dependency_edges(routes: RouteTable) -> EdgeArray:
    """Return the waits between channels of requests, each as link * levels + level; distinct."""
    topology, num_levels = routes.topology, routes.levels.num_levels
    sips = range(len(topology.chiplets))
    # through the IO chiplets and between them, for every spread that makes a difference
    spreads = range(lcm(topology.num_connections, topology.fabric.period))
    found = [*_crossing_edges(routes), *_host_edges(routes)]
    for spread, source, target in product(spreads, sips, sips):
        found += _sip_pair_edges(routes, source, target, spread)
    joints = [(one[0] * num_levels + one[1], two[0] * num_levels + two[1]) for one, two in found]
    edges = np.concatenate((_cube_edges(routes), np.array(joints, dtype=np.int64).reshape(-1, 2)))
    limit = num_levels * len(topology.links)
    packed = np.unique(edges[:, 0] * limit + edges[:, 1])
    return np.stack((packed // limit, packed % limit), axis=1)


def _open_sides(routes: RouteTable, cube: int) -> frozenset[Side]:
    return frozenset(side for side in Side if (cube, side) in routes.topology.crossings)


def _joins_io(routes: RouteTable, cube: int) -> bool:
    """Whether the north port leads to the IO chiplet."""
    topology = routes.topology
    return bool(topology.chiplets) and topology.grid.cell(topology.grid.cube_coord(cube))[1] == 0


def _may_enter(entry: Side, leave: Side, *, north_is_io: bool) -> bool:
    """Packets that come along a row of cubes never leave the SIP."""
    if entry not in _ENTRIES[leave]:
        return False
    return entry is leave.opposite or not (leave is Side.NORTH and north_is_io)


def _cube_edges(routes: RouteTable) -> EdgeArray:
    topology, num_levels = routes.topology, routes.levels.num_levels

    @cache
    def template_edges(open_sides: frozenset[Side], north_is_io: bool) -> EdgeArray:
        found: set[tuple[int, int]] = set()
        for leg in _legs(routes, open_sides, north_is_io):
            found.update(pairwise(link * num_levels + level for link, level in leg))
        return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)

    parts = [
        template_edges(_open_sides(routes, cube), _joins_io(routes, cube)) + base * num_levels
        for cube, base in enumerate(topology.link_base)
    ]
    return np.concatenate(parts)


def _legs(
    routes: RouteTable, open_sides: frozenset[Side], north_is_io: bool
) -> Iterator[list[Channel]]:
    """Yield every leg that some request takes through a cube with neighbours at these sides."""
    die, levels = routes.topology.die, routes.levels
    host_side = () if die.pcie_ep is None else (die.pcie_ep,)
    requesters, targets = (*die.requesters, *host_side), (*die.targets, *host_side)
    arrivals = [number for side in open_sides for number in die.connections[side]]
    ends = [(one, other, levels.last) for one in (*requesters, *arrivals) for other in targets]
    for side in open_sides:
        level = levels.moving[side]
        for index, connection in enumerate(die.connections[side]):
            ends += ((one, connection, level) for one in requesters)
            ends += (
                (die.connections[entry][index], connection, level)
                for entry in open_sides
                if _may_enter(entry, side, north_is_io=north_is_io)
            )
    for one, other, level in ends:
        if one != other:
            yield [(link, level + sublevel) for link, sublevel in die.leg(one, other)]


def _crossing_edges(routes: RouteTable) -> Iterator[Edge]:
    """Yield joints out of a die, over the wire, into the next: for every connection of a port."""
    topology, levels = routes.topology, routes.levels
    die, moving = topology.die, levels.moving
    for (cube, side), crossings in topology.crossings.items():
        base, north_is_io = topology.link_base[cube], _joins_io(routes, cube)
        onward = [levels.last] + [
            moving[leave]
            for leave in _open_sides(routes, cube)
            if _may_enter(side, leave, north_is_io=north_is_io)
        ]
        for connection, crossing in zip(die.connections[side], crossings, strict=True):
            router = die.seats[connection]
            outward = base + die.link_between[router, connection]
            yield (outward, moving[side]), (crossing, moving[side])
            inward = base + die.link_between[connection, router]
            before = reverse_link(crossing), moving[side.opposite]  # it moved here the other way
            yield from ((before, (inward, level)) for level in onward)
        if side is not Side.NORTH or not north_is_io:
            continue
        south, north, coord = moving[Side.SOUTH], moving[Side.NORTH], topology.grid.cube_coord(cube)
        chiplet = topology.chiplets[coord.sip]  # its side of the wires to the cube
        connections = chiplet.connections[topology.grid.cell(coord)[0]]
        for connection, crossing in zip(connections, crossings, strict=True):
            inward = chiplet.inward[connection]
            yield (crossing, north), (inward, north)
            yield (reverse_link(inward), south), (reverse_link(crossing), south)


def _host_edges(routes: RouteTable) -> Iterator[Edge]:
    topology, moving = routes.topology, routes.levels.moving
    south, north = moving[Side.SOUTH], moving[Side.NORTH]
    for sip, (link, endpoint) in enumerate(
        zip(topology.host_links, topology.endpoints, strict=True)
    ):
        if topology.chiplets:
            inward, into, out = topology.chiplets[sip].inward[endpoint], south, north
        else:
            local, die = endpoint - topology.node_base[0], topology.die
            inward = topology.link_base[0] + die.link_between[local, die.seats[local]]
            into = out = routes.levels.last
        yield (link, south), (inward, into)
        yield (reverse_link(inward), out), (reverse_link(link), north)


def _sip_pair_edges(routes: RouteTable, source: int, target: int, spread: int) -> Iterator[Edge]:
    """What climbs or starts in one chiplet, goes to the other, and descends or ends there."""
    topology, levels = routes.topology, routes.levels
    south, north = levels.moving[Side.SOUTH], levels.moving[Side.NORTH]
    index = spread % topology.num_connections
    near, far = topology.chiplets[source], topology.chiplets[target]
    starts = [(near.inward[near.io_cpu], south)]
    starts += ((near.inward[port[index]], north) for port in near.connections)
    ends = [(reverse_link(far.inward[far.io_cpu]), north)]
    downward = [(reverse_link(far.inward[port[index]]), south) for port in far.connections]
    if source == target:  # only the host and the launch processor go down into the SIP's cubes
        host_in = near.inward[near.pcie_ep], south
        host_out = reverse_link(near.inward[near.pcie_ep]), north
        from_cpu, *climbing = starts
        yield from ((host_in, end) for end in (*ends, *downward))
        yield from ((from_cpu, end) for end in (host_out, *downward))
        yield from ((start, end) for start in climbing for end in (host_out, *ends))
        return
    middle: list[Channel] = []
    for step in topology.fabric.steps(source, target, spread):
        out_chiplet, in_chiplet = (
            next(chiplet for chiplet in topology.chiplets if port in chiplet.ports)
            for port in (step.out_port, step.in_port)
        )
        middle.append((reverse_link(out_chiplet.inward[step.out_port]), step.level))
        middle += ((wire, step.level) for wire in step.wires)
        middle.append((in_chiplet.inward[step.in_port], step.level))
    yield from ((start, middle[0]) for start in starts)
    yield from pairwise(middle)
    yield from ((middle[-1], end) for end in (*ends, *downward))
