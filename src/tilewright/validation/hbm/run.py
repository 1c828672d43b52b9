"""Accesses to one pseudo-channel or to a whole stack, through an engine's memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tilewright.device.memory import slice_spec
from tilewright.engine import Engine, EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.engine.dram.spec import BankedSpec
from tilewright.engine.statistics import ChannelCounters
from tilewright.errors import InternalError
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import HbmSpec
from tilewright.validation.engine_run import ends_of, finish
from tilewright.validation.finding import Times, gb_per_s


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of at most a packet."""

    at_ps: int
    address: int
    num_bytes: int
    is_write: bool = False


@dataclass(frozen=True, slots=True)
class StreamRun:
    """When each access of a run was done, in the order of the accesses, and the counters."""

    done_ps: Times
    counters: tuple[ChannelCounters, ...]


def hbm_spec(preset: str, *, refresh_ns: int | None) -> HbmSpec:
    """The memory of a preset. ``refresh_ns``: how long a refresh takes, None: there is none."""
    refresh = ["kind=none"]
    if refresh_ns is not None:
        refresh = ["kind=all_bank", f"all_bank_ps={refresh_ns} ns"]
    return parse_machine(preset, [f"cube.hbm.refresh.{each}" for each in refresh]).cube.hbm


@lru_cache(maxsize=32)
def channel_memory(preset: str, refresh_ns: int | None = None) -> BankedSpec:
    """One pseudo-channel of a stack; it refreshes first after a whole interval."""
    spec = hbm_spec(preset, refresh_ns=refresh_ns)
    slices = spec.pseudo_channels
    memory = slice_spec(spec, slices - 1, slices)
    if not isinstance(memory, BankedSpec):
        raise InternalError("validate", f"a simple memory in {preset}", "a banked one", "report it")
    return memory


def address_of(spec: BankedSpec, place: Mapping[str, int]) -> int:
    """Of the first byte at a place; fields that it leaves out are 0.

    >>> address_of(channel_memory("ahbm"), {"bank_group": 1, "column": 3})
    224
    """
    sizes = {
        "burst": spec.burst_bytes,
        "bank_group": spec.bank_groups,
        "column": spec.row_bytes // spec.burst_bytes,
        "bank": spec.banks,
        "stack_id": spec.stack_ids,
        "row": spec.rows,
    }
    address, unit = 0, 1
    for name in spec.address_map:
        address += place.get(name, 0) * unit
        unit *= sizes[name]
    return address


def _engine_of(
    memories: Sequence[BankedSpec], packet_bytes: int, kind: EngineKind
) -> tuple[Engine, list[int], list[tuple[int, int]]]:
    """An engine with memories, their servers, and for each the round trips that read and write."""
    engine = build_engine(
        kind, EngineSpec(memories[0].burst_bytes, packet_bytes // memories[0].burst_bytes)
    )
    servers, trips = [], []
    for number, memory in enumerate(memories):
        server = engine.add_memory(f"memory{number}", memory, memory.capacity_bytes)
        # answers must come back somehow
        wire = engine.add_server(ServerSpec(f"wire{number}", bytes_per_us=10**9, latency_ps=1))
        out, back = engine.add_route([server]), engine.add_route([wire])
        reads, writes = (engine.add_round_trip(out, back, writes=w) for w in (False, True))
        servers.append(server)
        trips.append((reads, writes))
    return engine, servers, trips


def run_accesses(spec: BankedSpec, accesses: Sequence[Access], kind: EngineKind) -> StreamRun:
    """Each access is an exchange of its own; who finds no room waits in front of the memory."""
    largest = max(access.num_bytes for access in accesses)
    engine, (server,), (trips,) = _engine_of([spec], largest, kind)
    graph = TaskGraph()
    for number, access in enumerate(accesses):
        trip, place = trips[access.is_write], access.address
        graph.exchange(
            trip, access.num_bytes, delay_ps=access.at_ps, served_effect=number, tag=place
        )
    finish(engine, graph)
    return StreamRun(ends_of(engine), engine.memory_counters(server))


def burst_ends_ps(
    memories: Sequence[BankedSpec], num_bytes: int, kind: EngineKind, *, packet_bytes: int
) -> Times:
    """A read stream of so many bytes from each memory: when each packet was done."""
    engine, _, trips = _engine_of(memories, packet_bytes, kind)
    graph = TaskGraph()
    for reads, _ in trips:
        graph.exchange(reads, num_bytes)
    engine.set_trace(True)
    finish(engine, graph)
    return np.array([record.done_ps for record in engine.take_memory_trace()], np.int64)


def stream_rate(run: StreamRun, num_bytes: int) -> Fraction:
    """GB/s of the second half of equal accesses, done in order."""
    half = len(run.done_ps) // 2
    taken_ps = int(run.done_ps[-1] - run.done_ps[half - 1])
    return gb_per_s((len(run.done_ps) - half) * num_bytes, taken_ps)
