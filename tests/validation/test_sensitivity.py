"""No key of a machine file is silently unused: each one, changed, changes a time.

The keys come from the schema itself, so a new field fails here until something uses it. What only
parts above the device use stands in ``ELSEWHERE`` with its reason; such a key must change nothing
here, so that the list cannot outlive its reasons.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import ValidationError

from tilewright.device.build import Device, build_device
from tilewright.device.command import CommandPath
from tilewright.device.dma import Access, Channel
from tilewright.engine import TaskGraph
from tilewright.errors import SpecError
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import BlockSpec, MachineSpec
from tilewright.machine.spec.field import walk_sections
from tilewright.programs.probe.run import run_probe

Tree = dict[str, Any]

# Small enough to be quick, and so tight that every queue, window and refresh is met.
TIGHT = (
    "sip.count=2",
    "sip.rows=1",
    "cube.pes=2",
    "cube.hbm.pseudo_channels=4",
    "cube.hbm.capacity_bytes=64 MiB",
    "cube.hbm.read_queue_bursts=64",
    "cube.hbm.write_queue_bursts=64",
    "cube.hbm.drain_high_bursts=40",
    "cube.hbm.drain_low_bursts=8",
    "cube.hbm.refresh.interval_ps=1 us",
    "cube.hbm.refresh.all_bank_ps=200 ns",
    "host.in_flight_bytes=16 KiB",
    "pe.dma.in_flight_bytes=4 KiB",
)

# What a key needs to have a meaning at all.
CONTEXTS = {
    "mesh": (),
    "ring": ("cube.noc={kind: ring, routers: 5}",),
    "crossbar": ("cube.noc={kind: crossbar}",),
    "simple": ("cube.hbm.model=simple",),
    "per_bank": ("cube.hbm.refresh.kind=per_bank",),
    "sips": ("sip.count=4", "fabric.kind=mesh", "fabric.columns=2"),
    "full": ("cube.pes=4", "cube.hbm.pseudo_channels=8", "cube.sram_position_um=[5600, 5000]"),
}
MEANT_IN = {
    "cube.hbm.simple_latency_ps": "simple",
    "cube.hbm.simple_efficiency_percent": "simple",
    "cube.hbm.refresh.per_bank_ps": "per_bank",
    "fabric.columns": "sips",
    "sip.count": "sips",
    "cube.noc.hole_rows": "full",
    "cube.noc.hole_columns": "full",
}

ELSEWHERE = {
    "name": "for people",
    "description": "for people",
    "routing": "has one value",
    "address": "the widths of an address; machine.address has its own laws",
    "cube.hbm.capacity_bytes": "a limit: an access beyond it is refused",
    "cube.sram.capacity_bytes": "a limit: an access beyond it is refused",
    "cube.m_cpu.buffer_bytes": "a limit: a packet that does not fit is refused",
    "sip.io_cpu.buffer_bytes": "a limit: a packet that does not fit is refused",
    "pe.cpu.buffer_bytes": "a limit: a packet that does not fit is refused",
    "pe.scheduler": "takes commands; device.command has its own laws",
    "pe.queue_commands": "how many commands a PE may have in flight",
    "pe.gemm": "device.gemm has its own laws",
    "pe.vector": "device.vector has its own laws",
    "pe.tcm": "device.build has the laws of its ports",
    "pe.registers": "engine.issuer has its own laws",
    "pe.mmu": "device.dma has its own laws",
}


@cache
def tree_of(context: str) -> Tree:
    spec = parse_machine("ahbm-small", (*TIGHT, *CONTEXTS[context]))
    return spec.model_dump()


def spec_of(tree: Tree) -> MachineSpec:
    return MachineSpec.model_validate(tree)


def leaves(context: str) -> Iterator[tuple[str, Any]]:
    """Keys with a value of their own, and what the schema says of it."""
    for path, section in walk_sections(spec_of(tree_of(context))):
        for name, field in type(section).model_fields.items():
            is_block = isinstance(section, BlockSpec) and name in ("impl", "parameters")
            has_keys = any(
                isinstance(part, type) and hasattr(part, "model_fields")
                for part in (field.annotation, *get_args(field.annotation))
            )
            if not is_block and not has_keys and f"{path}.{name}" != "cube.noc":
                yield f"{path}.{name}".lstrip("."), field.annotation


def keys_of(context: str) -> list[str]:
    found = [key for key, _ in leaves(context) if MEANT_IN.get(key, "mesh") == "mesh"]
    if context == "mesh":
        return [key for key in found if key != "cube.noc.kind"]
    if context in ("ring", "crossbar"):
        return [key for key in found if key.startswith("cube.noc.") and key != "cube.noc.kind"]
    return [key for key, meant in MEANT_IN.items() if meant == context]


def is_elsewhere(key: str) -> bool:
    return any(key == part or key.startswith(f"{part}.") for part in ELSEWHERE)


def others_of(value: Any, annotation: Any) -> Iterator[Any]:
    """Values that a key could have instead, the greatest differences first."""
    options = get_args(annotation) if get_origin(annotation) is Literal else ()
    if isinstance(value, str):
        yield from (option for option in options if option != value) if options else (f"{value}x",)
    elif isinstance(value, tuple):
        yield value[::-1]
        yield (value[0], *value[2:5], value[1], *value[5:])
    elif isinstance(value, int):
        for other in (2 * value, value // 2, 1, 1024, value - 1, value + 1, 4 * value, value // 4):
            if other != value:
                yield other


def changed(tree: Tree, key: str, value: Any) -> Tree:
    name, _, rest = key.partition(".")
    return tree | {name: changed(tree[name], rest, value) if rest else value}


def value_at(tree: Tree, key: str) -> Any:
    for name in key.split("."):
        tree = tree[name]
    return tree


def crowd_times(spec: MachineSpec) -> list[tuple[int, int]]:
    """Reads and writes of everybody everywhere at the same time, in and out of order."""
    device = build_device(build_machine(spec))
    near, beside, far = PeCoord(0, 0, 0), PeCoord(0, 0, 1), PeCoord(0, 1, 1)
    other = PeCoord(spec.sip.count - 1, 0, 0)
    trips = [
        *(device.pe_access(pe, near, access) for pe in (near, beside) for access in Access),
        *(device.pe_access(pe, near, Access.READ) for pe in (far, other)),
        device.pe_access(beside, other, Access.WRITE),
        *(device.pe_access(pe, far, Access.WRITE) for pe in (near, beside, other)),
        *(device.pe_access(PeCoord(0, 1, 0), pe, Access.WRITE) for pe in (other, near)),
        *(device.host_access(pe, access) for pe in (beside, far) for access in Access),
        *(_sram_trip(device, pe, access) for pe in (near, beside) for access in Access),
    ]
    for owner, trip in enumerate(trips):
        graph = TaskGraph()
        for turn in range(40):
            size = (64, 1024, 200, 2048)[(owner + turn) % 4]
            graph.exchange(
                trip, size, effect=owner, tag=(turn * 7919 + owner * 104_729) * 64 % 2**20
            )
        device.engine.submit(graph, owner=owner)
    calm = _sram_trip(device, PeCoord(spec.sip.count - 1, 1, 1), Access.WRITE)
    graph = TaskGraph()
    graph.exchange(calm, 16_384, effect=len(trips))
    device.engine.submit(graph, owner=len(trips))
    device.engine.run()
    return device.engine.take_effects()


def _sram_trip(device: Device, pe: PeCoord, access: Access) -> int:
    ends = device.machine.node_of(NodeKind.PE_DMA, pe), device.machine.node_of(NodeKind.SRAM, pe)
    return device.round_trip(*ends, Channel(pe, access), spread=pe.pe)


def probe_times(spec: MachineSpec) -> list[int]:
    names = ["pe_local", "host_write_far", "pe_other_sip", "east_port_8", "hot_2", "bisection"]
    record = run_probe(build_machine(spec), names=names, sizes=[256, 30_000])
    return [row.latency_ps for row in record.cases]


def command_times(spec: MachineSpec) -> list[tuple[int, int]]:
    """When PEs have commands with entries of their own, and when the host has all answers."""
    device = build_device(build_machine(spec))
    path = CommandPath(device)
    pes = [PeCoord(0, 0, 0), PeCoord(0, 0, 1), PeCoord(0, 1, 1), PeCoord(spec.sip.count - 1, 0, 0)]
    effects = {pe: number for number, pe in enumerate(pes)}
    for turn in range(8):  # close behind each other: they wait in the buffers of processors
        delivery = path.deliver(dict.fromkeys(pes, 90 * turn), is_shared=False, effects=effects)
        for pe in pes:
            path.answer(delivery.graph, pe, delivery.answers[pe], (delivery.arrivals[pe],))
        delivery.graph.timer(after=(delivery.end,), effect=len(pes))
        device.engine.submit(delivery.graph, owner=turn)
    device.engine.run()
    return device.engine.take_effects()


@cache
def base_times(context: str) -> tuple[list[tuple[int, int]], list[int], list[tuple[int, int]]]:
    spec = spec_of(tree_of(context))
    return crowd_times(spec), probe_times(spec), command_times(spec)


def makes_a_difference(context: str, key: str, value: Any) -> bool:
    """If some result differs; a value that the machine cannot have makes none."""
    try:
        spec = spec_of(changed(tree_of(context), key, value))
        build_machine(spec)
    except (ValidationError, SpecError):
        return False
    crowd, probe, command = base_times(context)
    return (
        crowd_times(spec) != crowd or command_times(spec) != command or probe_times(spec) != probe
    )


USED = [(context, key) for context in CONTEXTS for key in keys_of(context) if not is_elsewhere(key)]
UNUSED = [key for key in keys_of("mesh") if is_elsewhere(key)]


@pytest.mark.parametrize(("context", "key"), USED)
def test_each_key_that_is_changed_changes_a_result(context: str, key: str) -> None:
    annotation = dict(leaves(context))[key]
    value = value_at(tree_of(context), key)
    assert any(makes_a_difference(context, key, other) for other in others_of(value, annotation)), (
        f"{key} = {value} decides nothing"
    )


def test_a_key_that_only_other_parts_use_changes_nothing_here() -> None:
    annotations = dict(leaves("mesh"))
    spoilt = []
    for key in UNUSED:
        others = others_of(value_at(tree_of("mesh"), key), annotations[key])
        other = next(others, None)
        if other is not None and makes_a_difference("mesh", key, other):
            spoilt.append(key)
    assert spoilt == []


def test_every_reason_names_a_key_that_there_is() -> None:
    keys = keys_of("mesh")
    for part in ELSEWHERE:
        assert any(key == part or key.startswith(f"{part}.") for key in keys), part


def test_networks_of_different_kinds_take_different_times() -> None:
    found = [base_times(context)[1] for context in ("mesh", "ring", "crossbar")]
    assert len({tuple(times) for times in found}) == 3
