"""The memories behind the network of a cube: the slice of a PE's HBM, the shared SRAM."""

from dataclasses import fields
from typing import Any

from tilewright.device.block import build_service
from tilewright.engine import Engine, ServerSpec
from tilewright.engine.dram.spec import (
    BankedRefreshSpec,
    BankedSpec,
    BankedTimingSpec,
    RefreshScope,
    SimpleSpec,
)
from tilewright.machine.spec import HbmSpec, RefreshSpec, SramSpec
from tilewright.units import PS_PER_US


def add_slice(engine: Engine, name: str, spec: HbmSpec, slice_index: int, num_slices: int) -> int:
    """The server of a slice's controller; ``docs/memory.md`` is its law.

    Detailed: pseudo-channels with banks, rows, bank groups, activation window, turnaround, write
    drain and refresh. Simple: chunks go at each pseudo-channel's rate, then ``simple_latency_ps``.
    """
    service = build_service(name, spec)
    if service is not None:
        return engine.add_server(ServerSpec(name, service=service))
    memory = slice_spec(spec, slice_index, num_slices)
    return engine.add_memory(name, memory, spec.capacity_bytes // num_slices)


def slice_spec(spec: HbmSpec, slice_index: int, num_slices: int) -> BankedSpec | SimpleSpec:
    """What the engine is told of a slice. Slices of a cube refresh one after the other."""
    num_channels = spec.pseudo_channels // num_slices
    if spec.model == "simple":
        return SimpleSpec(
            pseudo_channels=num_channels,
            interleave_bytes=spec.interleave_bytes,
            bytes_per_us=spec.simple_bytes_per_us,
            latency_ps=spec.simple_latency_ps,
        )
    of_slice: dict[str, Any] = {
        "pseudo_channels": num_channels,
        "rows": spec.capacity_bytes // spec.pseudo_channels // (spec.row_bytes * spec.num_banks),
        "timing": BankedTimingSpec(**spec.timing.distances_ps),
        "refresh": _refresh(spec.refresh, slice_index, num_slices),
    }
    alike = [each.name for each in fields(BankedSpec) if each.name not in of_slice]
    return BankedSpec(**{name: getattr(spec, name) for name in alike}, **of_slice)


def first_access_ps(spec: HbmSpec, num_bytes: int, *, is_write: bool) -> int:
    """The least time of an access that finds its banks closed, without refresh.

    Its busiest pseudo-channel has ``min(num_bytes, interleave_bytes)`` of it, burst after burst.
    """
    chunk_bytes = min(num_bytes, spec.interleave_bytes)
    first_ps = spec.least_access_ps(is_write=is_write, opens=True)
    if spec.model == "simple":
        return -(-chunk_bytes * PS_PER_US // spec.simple_bytes_per_us) + first_ps
    return first_ps + (-(-chunk_bytes // spec.burst_bytes) - 1) * spec.burst_ps


def _refresh(refresh: RefreshSpec, slice_index: int, num_slices: int) -> BankedRefreshSpec | None:
    if refresh.kind == "none":
        return None
    is_all = refresh.kind == "all_bank"
    first_ps = (slice_index + 1) * refresh.interval_ps // num_slices + refresh.phase_ps
    return BankedRefreshSpec(
        scope=RefreshScope.ALL_BANKS if is_all else RefreshScope.ONE_BANK,
        interval_ps=refresh.interval_ps,
        first_ps=(first_ps - 1) % refresh.interval_ps + 1,  # from 1 to interval_ps
        busy_ps=refresh.busy_ps,
    )


def add_sram(engine: Engine, name: str, spec: SramSpec, *, packet_bytes: int) -> int:
    """The server of the memory: accesses one after the other, bytes at ``bytes_per_us``.

    ``access_ps`` is the latency of its node, so the link to it has that already.
    """
    service = build_service(name, spec)
    if service is not None:
        return engine.add_server(ServerSpec(name, service=service))
    memory = sram_memory(spec, packet_bytes=packet_bytes)
    return engine.add_memory(name, memory, spec.capacity_bytes)


def sram_memory(spec: SramSpec, *, packet_bytes: int) -> SimpleSpec:
    """Return what the engine is told of the memory, unless the user has a block for it."""
    return SimpleSpec(
        pseudo_channels=1,
        interleave_bytes=packet_bytes,
        bytes_per_us=spec.bytes_per_us,
        latency_ps=0,
    )
