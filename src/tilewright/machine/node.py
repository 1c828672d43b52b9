"""Nodes, their names, and the links between them (ADR 0005): a link is one server of the engine.

A name is a path: ``sip0.cube3.pe5.dma``. ``_PATTERNS`` is the whole grammar.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tilewright.errors import SpecError
from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord
from tilewright.units import wire_ps

Where = SipCoord | CubeCoord | PeCoord | None


class NodeKind(Enum):
    """What a node is; ``name`` has the pattern of each kind's name."""

    HOST = "host"
    SWITCH = "switch"
    PCIE_EP = "pcie_ep"
    IO_CPU = "io_cpu"
    IO_NOC = "io_noc"
    SIP_PORT = "sip_port"
    IO_CONNECTION = "io_connection"
    ROUTER = "router"
    RING_ROUTER = "ring_router"
    CROSSBAR = "crossbar"
    CONNECTION = "connection"
    M_CPU = "m_cpu"
    SRAM = "sram"
    HBM_CTRL = "hbm_ctrl"
    PE_DMA = "pe_dma"
    PE_CPU = "pe_cpu"

    @property
    def may_request(self) -> bool:
        """Starts requests and communication, and takes responses."""
        return self in _REQUESTERS

    @property
    def is_terminal(self) -> bool:
        """A route may end here; memories only answer."""
        return self in _REQUESTERS or self in _MEMORIES


_REQUESTERS = frozenset(
    (NodeKind.HOST, NodeKind.IO_CPU, NodeKind.M_CPU, NodeKind.PE_DMA, NodeKind.PE_CPU)
)
_MEMORIES = frozenset((NodeKind.HBM_CTRL, NodeKind.SRAM))


class LinkKind(Enum):
    """Which wire a link is."""

    NETWORK = "network"  # router to router inside a die
    ATTACHMENT = "attachment"  # a router and what sits on it
    CONNECTION = "connection"  # a router and a connection of a die-to-die port
    DIE_TO_DIE = "die_to_die"  # connection to connection
    PCIE = "pcie"  # host and endpoint
    SIP_PORT = "sip_port"  # IO crossbar and a port to other SIPs
    FABRIC = "fabric"  # SIP to SIP, or SIP to switch


class Node(NamedTuple):
    """A named place: it has a latency and an input buffer per virtual channel, and no rate."""

    name: str
    kind: NodeKind
    latency_ps: int
    buffer_bytes: int
    position_um: tuple[int, int] | None  # x and y on its die; None: no place on a die
    where: Where


class Link(NamedTuple):
    """A directed wire from node to node, by number.

    The links of a pair have the numbers ``2 k`` and ``2 k + 1``, so that ``reverse_link`` is
    arithmetic. ``node_ps`` and ``buffer_bytes`` are those of the node it leads to.
    """

    src: int
    dst: int
    kind: LinkKind
    bytes_per_us: int
    wire_ps: int
    node_ps: int
    buffer_bytes: int
    credit_ps: int
    reassemble: bool

    @property
    def latency_ps(self) -> int:
        return self.wire_ps + self.node_ps


def reverse_link(link_id: int) -> int:
    """The link between the same nodes the other way."""
    return link_id ^ 1


# A SIP without an IO chiplet has its endpoint and its launch processor on the die itself: no "io0".
_PATTERNS = (
    (NodeKind.HOST, "host"),
    (NodeKind.SWITCH, "fabric.switch{index}"),
    (NodeKind.PCIE_EP, "sip{sip}.io{io}.pcie_ep"),
    (NodeKind.PCIE_EP, "sip{sip}.pcie_ep"),
    (NodeKind.IO_CPU, "sip{sip}.io{io}.io_cpu"),
    (NodeKind.IO_CPU, "sip{sip}.io_cpu"),
    (NodeKind.IO_NOC, "sip{sip}.io{io}.io_noc"),
    (NodeKind.SIP_PORT, "sip{sip}.io{io}.link{index}"),
    (NodeKind.IO_CONNECTION, "sip{sip}.io{io}.ucie-P{port}.conn{index}"),
    (NodeKind.ROUTER, "sip{sip}.cube{cube}.r{row}c{column}"),
    (NodeKind.RING_ROUTER, "sip{sip}.cube{cube}.ring{index}"),
    (NodeKind.CROSSBAR, "sip{sip}.cube{cube}.xbar"),
    (NodeKind.CONNECTION, "sip{sip}.cube{cube}.ucie-{side}.conn{index}"),
    (NodeKind.M_CPU, "sip{sip}.cube{cube}.m_cpu"),
    (NodeKind.SRAM, "sip{sip}.cube{cube}.sram"),
    (NodeKind.HBM_CTRL, "sip{sip}.cube{cube}.hbm_ctrl.pe{pe}"),
    (NodeKind.PE_DMA, "sip{sip}.cube{cube}.pe{pe}.dma"),
    (NodeKind.PE_CPU, "sip{sip}.cube{cube}.pe{pe}.cpu"),
)


@dataclass(frozen=True, slots=True)
class NodeName:
    """The parts of a name; a part that the kind's pattern lacks is None."""

    kind: NodeKind
    sip: int | None = None
    io: int | None = None
    cube: int | None = None
    pe: int | None = None
    row: int | None = None
    column: int | None = None
    port: int | None = None
    side: str | None = None
    index: int | None = None

    @property
    def where(self) -> Where:
        """The smallest part of the machine that the node belongs to."""
        if self.sip is None:
            return None
        if self.cube is None:
            return SipCoord(self.sip)
        if self.pe is None:
            return CubeCoord(self.sip, self.cube)
        return PeCoord(self.sip, self.cube, self.pe)


def _regex_of(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern).replace(r"\{", "{").replace(r"\}", "}")
    text = text.replace("{side}", "(?P<side>[NESW])")
    # no leading zeros: one node, one name
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>0|[1-9][0-9]{0,8})", text))


_PARTS = tuple(field for field in NodeName.__slots__ if field != "kind")
_TEMPLATES = {
    (kind, frozenset(re.findall(r"\{(\w+)\}", pattern))): pattern for kind, pattern in _PATTERNS
}
_REGEXES = tuple((kind, _regex_of(pattern)) for kind, pattern in _PATTERNS)


def format_name(name: NodeName) -> str:
    """The text of a name.

    >>> format_name(NodeName(NodeKind.ROUTER, sip=0, cube=3, row=1, column=4))
    'sip0.cube3.r1c4'
    """
    parts = {part: value for part in _PARTS if (value := getattr(name, part)) is not None}
    template = _TEMPLATES.get((name.kind, frozenset(parts)))
    if template is None:
        patterns = [pattern for kind, pattern in _PATTERNS if kind is name.kind]
        found = f"{name.kind.value} with {', '.join(parts) or 'no parts'}"
        raise SpecError("node name", found, " or ".join(patterns), "give the parts of a pattern")
    return template.format(**parts)


def place_name(place: SipCoord | CubeCoord | PeCoord) -> str:
    """What the names of all nodes of a place begin with; its units are called so, too.

    >>> place_name(PeCoord(0, 3, 5))
    'sip0.cube3.pe5'
    """
    match place:
        case SipCoord(sip=sip):
            return f"sip{sip}"
        case CubeCoord(sip=sip, cube=cube):
            return f"sip{sip}.cube{cube}"
        case PeCoord(sip=sip, cube=cube, pe=pe):
            return f"sip{sip}.cube{cube}.pe{pe}"


def parse_name(text: str) -> NodeName:
    """The parts of a name; a text of no pattern is refused.

    >>> parse_name("sip0.cube3.hbm_ctrl.pe5").where
    PeCoord(sip=0, cube=3, pe=5)
    """
    for kind, regex in _REGEXES:
        match = regex.fullmatch(text)
        if match is not None:
            parts = match.groupdict()
            side = parts.pop("side", None)
            numbers = {part: int(value) for part, value in parts.items()}
            return NodeName(kind, side=side, **numbers)
    patterns = ", ".join(pattern for _, pattern in _PATTERNS)
    raise SpecError("node name", repr(text), f"one of {patterns}", "correct the path")


# What leaves a rate boundary waits for its whole packet there (ADR 0005).
_BOUNDARIES = frozenset(
    (
        (NodeKind.CONNECTION, LinkKind.CONNECTION),
        (NodeKind.IO_CONNECTION, LinkKind.CONNECTION),
        (NodeKind.SIP_PORT, LinkKind.SIP_PORT),
        (NodeKind.PCIE_EP, LinkKind.ATTACHMENT),
        (NodeKind.PCIE_EP, LinkKind.PCIE),
        (NodeKind.HBM_CTRL, LinkKind.ATTACHMENT),
        (NodeKind.SRAM, LinkKind.ATTACHMENT),
    )
)


@dataclass(slots=True)
class Draft:
    """Lists that grow; numbers are positions in them."""

    ps_per_mm: int  # of wires
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def add_node(
        self,
        name: NodeName,
        buffer_bytes: int,
        *,
        latency_ps: int = 0,
        position_um: tuple[int, int] | None = None,
    ) -> int:
        """Add a node and return its number."""
        text = format_name(name)
        self.nodes.append(Node(text, name.kind, latency_ps, buffer_bytes, position_um, name.where))
        return len(self.nodes) - 1

    def join(
        self,
        one: int,
        other: int,
        kind: LinkKind,
        bytes_per_us: int,
        *,
        length_um: int = 0,
        latency_ps: int = 0,
    ) -> int:
        """Add the link from ``one`` to ``other``, whose number it returns, and its reverse.

        Its wire takes the time of its length and ``latency_ps``.
        """
        delay_ps = wire_ps(length_um, ps_per_mm=self.ps_per_mm) + latency_ps
        forward = len(self.links)
        for src, dst in ((one, other), (other, one)):
            target = self.nodes[dst]
            self.links.append(
                Link(
                    src=src,
                    dst=dst,
                    kind=kind,
                    bytes_per_us=bytes_per_us,
                    wire_ps=delay_ps,
                    node_ps=target.latency_ps,
                    buffer_bytes=target.buffer_bytes,
                    credit_ps=delay_ps,
                    reassemble=(self.nodes[src].kind, kind) in _BOUNDARIES,
                )
            )
        return forward
