import importlib
import pkgutil

import pytest

import tilewright

RECORDS = (
    "Breakdown",
    "DemoRecord",
    "Document",
    "EngineBenchRecord",
    "EngineRatios",
    "EngineWorkloadRow",
    "FailureRecord",
    "GrowthRow",
    "MachineCheckRecord",
    "MachineFigures",
    "MachineShowRecord",
    "OracleRow",
    "ProbeRecord",
    "ProbeRow",
    "RunRecord",
    "SkippedCase",
    "Totals",
    "ValidateRecord",
    "Versions",
    "WhatRan",
    "canonical_json",
    "content_hash",
    "describe_failure",
    "installed_version",
    "installed_versions",
    "read_record",
    "replace_file",
    "write_record",
)

# Packages that are not listed have no public names of their own.
PUBLIC_NAMES: dict[str, tuple[str, ...]] = {
    "tilewright.benches.peers": ("load_peer",),
    "tilewright.device": ("Access", "Channel", "Device", "build_device"),
    "tilewright.engine": (
        "AUTO",
        "Arbitration",
        "Auto",
        "Engine",
        "EngineKind",
        "EngineSpec",
        "Hub",
        "MemoryRecord",
        "PacketView",
        "Program",
        "RouteStatistics",
        "ServerSpec",
        "ServerStatistics",
        "Service",
        "Statistics",
        "TaskGraph",
        "TraceRecord",
        "build_engine",
        "digest_of",
        "native_built",
        "resolve_engine",
    ),
    "tilewright.errors": (
        "DeadlockError",
        "EngineError",
        "InternalError",
        "InterruptError",
        "MissingExtraError",
        "RecordError",
        "RegistryError",
        "ServerError",
        "SpecError",
        "TilewrightError",
        "TimeLimitError",
        "UnitError",
        "UsageError",
    ),
    "tilewright.machine": (
        "CubeCoord",
        "Machine",
        "MachineSpec",
        "PeCoord",
        "SipCoord",
        "build_machine",
        "list_presets",
        "machine_hash",
        "parse_machine",
        "parse_machine_text",
    ),
    "tilewright.machine.presets": (
        "list_presets",
        "preset_text",
    ),
    "tilewright.machine.spec": (
        "AddressSpec",
        "BlockSpec",
        "CommandProcessorSpec",
        "CrossbarSpec",
        "CubeSpec",
        "DmaSpec",
        "FabricSpec",
        "GemmSpec",
        "HbmSpec",
        "HbmTimingSpec",
        "HostSpec",
        "IoChipletSpec",
        "MachineSpec",
        "MeshSpec",
        "MmuSpec",
        "PcieSpec",
        "PeSpec",
        "RefreshSpec",
        "RegisterFileSpec",
        "RingSpec",
        "SipSpec",
        "SramSpec",
        "TcmSpec",
        "UcieSpec",
        "VectorSpec",
    ),
    "tilewright.records": RECORDS,
    "tilewright.units": (
        "MAX_PS",
        "PS_PER_NS",
        "PS_PER_S",
        "PS_PER_US",
        "clock_edge_ps",
        "flit_ps",
        "format_bytes",
        "format_ps",
        "format_rate",
        "num_flits",
        "parse_bytes",
        "parse_ps",
        "parse_rate",
        "transfer_ps",
    ),
}


def rooms() -> list[str]:
    """Every package, and the modules that stand beside them at the top."""
    walk = pkgutil.walk_packages(tilewright.__path__, "tilewright.")
    names = [info.name for info in walk if info.ispkg or info.name.count(".") == 1]
    return ["tilewright", *names]


@pytest.mark.parametrize("room", rooms())
def test_the_public_names_of_a_room_are_the_pinned_ones(room: str) -> None:
    module = importlib.import_module(room)
    assert tuple(module.__all__) == PUBLIC_NAMES.get(room, ())
    assert list(module.__all__) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_pinned_room_exists() -> None:
    assert set(PUBLIC_NAMES) <= set(rooms())


@pytest.mark.parametrize("room", rooms())
def test_every_room_says_what_it_holds(room: str) -> None:
    assert importlib.import_module(room).__doc__
