"""Fields of a machine file by their paths, as ``--set`` names them: values, and what links take."""

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.machine.build import Machine
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.machine.spec import MachineSpec

Scalar = str | int | float | bool | None

SEPARATOR = ", "
LISTS = frozenset(
    {"cube.hbm.address_map", "cube.m_cpu_position_um", "cube.sram_position_um"}
)  # fields whose value is a list, kept as one text

HOST_LINK = "host.pcie.lanes"
NOC_RATE, ATTACH_RATE = "cube.noc.bytes_per_us", "cube.noc.attach_bytes_per_us"
UCIE_RATE, FABRIC_RATE = "cube.ucie.bytes_per_us", "fabric.bytes_per_us"
_NODE_FIELDS = {  # section, and its latency if it has one
    NodeKind.ROUTER: ("cube.noc", "router_ps"),
    NodeKind.RING_ROUTER: ("cube.noc", "router_ps"),
    NodeKind.CROSSBAR: ("cube.noc", "router_ps"),
    NodeKind.CONNECTION: ("cube.ucie", "side_ps"),
    NodeKind.IO_CONNECTION: ("cube.ucie", "side_ps"),
    NodeKind.IO_NOC: ("sip.io", "noc_ps"),
    NodeKind.PCIE_EP: ("host.pcie", "endpoint_ps"),
    NodeKind.SIP_PORT: ("fabric", ""),
    NodeKind.SWITCH: ("fabric", "switch_ps"),
    NodeKind.SRAM: ("cube.sram", "access_ps"),
    NodeKind.HBM_CTRL: ("cube.hbm", ""),
}
_ATTACH_RATES = {
    NodeKind.SRAM: "cube.sram.bytes_per_us",
    NodeKind.PCIE_EP: HOST_LINK,
    NodeKind.IO_CPU: "sip.io.attach_bytes_per_us",
}


def flat_fields(spec: MachineSpec) -> dict[str, Scalar]:
    """Return every value of a machine by its path.

    >>> from tilewright.machine.parse import parse_machine
    >>> flat_fields(parse_machine("ahbm"))["cube.hbm.refresh.kind"]
    'all_bank'
    """
    found: dict[str, Scalar] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(f"{path}.{key}" if path else str(key), inner)
        elif isinstance(value, list):
            found[path] = SEPARATOR.join(map(str, value))
        else:
            found[path] = value

    walk("", spec.model_dump(mode="json"))
    return found


def spec_of_fields(fields: Mapping[str, Scalar]) -> MachineSpec:
    """Return the machine that has these fields: the inverse of ``flat_fields``.

    Imports no block of the user's. Raises ``pydantic.ValidationError`` for values that a machine
    file may not have.
    """
    tree: dict[str, Any] = {}
    for path, value in fields.items():
        *sections, name = path.split(".")
        section = tree
        for each in sections:
            section = section.setdefault(each, {})
        section[name] = value
        if path in LISTS and isinstance(value, str):
            items = value.split(SEPARATOR)
            section[name] = tuple(int(item) if item.isdecimal() else item for item in items)
    return MachineSpec.model_validate(tree)


def rate_field(machine: Machine, link_id: int) -> str:
    """Return the path of the field that sets the rate of a link.

    >>> from tilewright.machine import build_machine, parse_machine
    >>> machine = build_machine(parse_machine("ahbm-small"))
    >>> sorted({rate_field(machine, link) for link in range(len(machine.links))})[:3]
    ['cube.noc.attach_bytes_per_us', 'cube.noc.bytes_per_us', 'cube.sram.bytes_per_us']
    """
    link = machine.links[link_id]
    ends = {machine.nodes[link.src].kind, machine.nodes[link.dst].kind}
    match link.kind:
        case LinkKind.NETWORK:
            return NOC_RATE
        case LinkKind.ATTACHMENT:
            if machine.spec.sip.io is None and NodeKind.IO_CPU in ends:
                return ATTACH_RATE
            return next((_ATTACH_RATES[kind] for kind in ends & _ATTACH_RATES.keys()), ATTACH_RATE)
        case LinkKind.CONNECTION:
            return UCIE_RATE if NodeKind.IO_CONNECTION in ends else NOC_RATE
        case LinkKind.DIE_TO_DIE:
            return UCIE_RATE
        case LinkKind.SIP_PORT | LinkKind.FABRIC:
            return FABRIC_RATE
        case LinkKind.PCIE:
            return HOST_LINK


def latency_fields(machine: Machine, link_id: int) -> Iterator[tuple[str, int]]:
    """Yield what the latency of a link consists of: fields, and picoseconds of each."""
    link = machine.links[link_id]
    if link.wire_ps:
        yield "fabric.latency_ps" if link.kind is LinkKind.FABRIC else "ps_per_mm", link.wire_ps
    kind = machine.nodes[link.dst].kind
    section, latency = _NODE_FIELDS.get(kind, ("", ""))
    if link.node_ps and latency:
        yield f"{section}.{latency}", link.node_ps


def buffer_field(kind: NodeKind) -> str:
    """Return the path of the field that sets the input buffer of a part of a network."""
    return f"{_NODE_FIELDS[kind][0]}.buffer_bytes"
