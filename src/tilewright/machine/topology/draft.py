"""Nodes and links while they are being listed, and the rules that hold for every link."""

from dataclasses import dataclass, field

from tilewright.machine.node import Link, LinkKind, Node, NodeKind, NodeName, format_name
from tilewright.units import wire_ps

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
