"""From the spec to the machine: everything that is known before anything happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilewright.canonical import content_hash
from tilewright.errors import SpecError
from tilewright.machine.address import AddressLayout, build_address_layout
from tilewright.machine.coords import Grid, PeCoord
from tilewright.machine.deadlock import check_no_deadlock
from tilewright.machine.node import Link, Node, NodeKind, NodeName, format_name, parse_name
from tilewright.machine.route import Route, RouteTable, Traffic, plan_levels
from tilewright.machine.spec import MachineSpec, RefreshSpec
from tilewright.machine.topology.machine import HOST, build_topology

_OF_A_PE = frozenset((NodeKind.PE_DMA, NodeKind.PE_CPU, NodeKind.HBM_CTRL))


@dataclass(frozen=True, slots=True)
class Machine:
    """What the hardware is. Nodes and links are known by their position in the tuples."""

    spec: MachineSpec
    grid: Grid
    nodes: tuple[Node, ...] = field(repr=False)
    links: tuple[Link, ...] = field(repr=False)
    addresses: AddressLayout
    routes: RouteTable = field(repr=False)
    numbers: Mapping[str, int] = field(repr=False)  # node by name
    _places: dict[tuple[NodeKind, PeCoord], int] = field(
        default_factory=dict, repr=False, compare=False
    )

    def node_id(self, name: str) -> int:
        """The number of a node; a name that no node has is refused."""
        number = self.numbers.get(name)
        if number is None:
            parse_name(name)  # refuses what is no name at all
            what = f"no node {name!r} in machine {self.spec.name!r}"
            raise SpecError("node name", what, "a node of this machine", "see machine show")
        return number

    def node_of(self, kind: NodeKind, pe: PeCoord) -> int:
        """The node of a kind that a PE has, or its cube; found at first use and kept."""
        number = self._places.get((kind, pe))
        if number is None:
            own = pe.pe if kind in _OF_A_PE else None
            name = format_name(NodeName(kind, sip=pe.sip, cube=pe.cube, pe=own))
            number = self._places[kind, pe] = self.node_id(name)
        return number

    @property
    def host(self) -> int:
        """The node of the host."""
        return HOST

    def link_name(self, link_id: int) -> str:
        link = self.links[link_id]
        return f"{self.nodes[link.src].name} -> {self.nodes[link.dst].name}"

    def route(self, source: int, target: int, traffic: Traffic, spread: int) -> Route:
        """Links and virtual channels from node to node, computed at first use and kept.

        ``spread`` is the requester's PE number, for the host the target PE's; a response has the
        spread of its request.
        """
        return self.routes.find(source, target, traffic, spread)

    @property
    def num_virtual_channels(self) -> int:
        """Virtual channels of a link."""
        return self.routes.levels.num_virtual_channels

    def attachments(self) -> dict[str, str]:
        """Return the router on which each node of a cube sits."""
        topology = self.routes.topology
        return {
            self.nodes[base + node].name: self.nodes[base + router].name
            for base in topology.node_base
            for node, router in sorted(topology.die.seats.items())
        }


def build_machine(spec: MachineSpec) -> Machine:
    """Lay out, join and number everything; refuse what does not fit or could deadlock."""
    addresses = build_address_layout(spec)
    topology = build_topology(spec)
    routes = RouteTable(topology, plan_levels(topology.die.layout.num_sublevels))
    check_no_deadlock(routes)
    return Machine(
        spec=spec,
        grid=topology.grid,
        nodes=topology.nodes,
        links=topology.links,
        addresses=addresses,
        routes=routes,
        numbers=MappingProxyType({node.name: id_ for id_, node in enumerate(topology.nodes)}),
    )


def machine_hash(spec: MachineSpec) -> str:
    """SHA-256 of the resolved spec: equal hashes mean equal machines."""
    return content_hash(spec)


def refresh_of(spec: MachineSpec) -> RefreshSpec | None:
    """Return how the HBM of a machine refreshes; None if nothing in the machine does.

    A user's block has its own behaviour, which ``phase_ps`` does not reach.
    """
    hbm = spec.cube.hbm
    if hbm.impl is not None or hbm.model == "simple" or hbm.refresh.kind == "none":
        return None
    return hbm.refresh


def phase_shift_ps(spec: MachineSpec, index: int, count: int) -> int:
    """Return how much later refreshes are at one of ``count`` phases; 0 if nothing refreshes.

    Slices of a cube refresh ``interval / pes`` after each other, so a multiple of that only lets
    them change places, which a run over all slices does not notice. The phases are therefore
    spread evenly over the interval and over this distance too. Those of 2 ``count`` contain these.

    >>> from tilewright.machine.parse import parse_machine
    >>> [phase_shift_ps(parse_machine("ahbm"), index, 4) for index in range(4)]
    [0, 1096875, 2193750, 3290625]
    """
    refresh = refresh_of(spec)
    if refresh is None:
        return 0
    slices = spec.cube.pes
    return index * refresh.interval_ps * (slices + 1) // (count * slices) % refresh.interval_ps


def shift_refresh(machine: Machine, shift_ps: int) -> Machine:
    """Return the machine with all its refreshes ``shift_ps`` later, modulo one interval.

    Nodes, links and routes are shared with ``machine``: none of them depends on refresh.
    """
    refresh = refresh_of(machine.spec)
    if refresh is None or not shift_ps:
        return machine
    phase_ps = (refresh.phase_ps + shift_ps) % refresh.interval_ps
    moved = refresh.model_copy(update={"phase_ps": phase_ps})
    hbm = machine.spec.cube.hbm.model_copy(update={"refresh": moved})
    cube = machine.spec.cube.model_copy(update={"hbm": hbm})
    return replace(machine, spec=machine.spec.model_copy(update={"cube": cube}))
