"""Nodes and links, as ADR 0005 defines them: a link becomes exactly one server of the engine."""

from dataclasses import dataclass
from enum import Enum

from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord

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


@dataclass(frozen=True, slots=True)
class Node:
    """A named place: it has a latency and an input buffer per virtual channel, and no rate."""

    name: str
    kind: NodeKind
    latency_ps: int
    buffer_bytes: int
    position_um: tuple[int, int] | None  # x and y on its die; None: no place on a die
    where: Where


@dataclass(frozen=True, slots=True)
class Link:
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
