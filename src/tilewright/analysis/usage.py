"""Use of units, links and memories between two moments of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from tilewright.analysis.trace.servers import ServerKind, ServerTable
from tilewright.device.build import Device
from tilewright.engine.dram.spec import BankedSpec
from tilewright.engine.statistics import ChannelCounters
from tilewright.records import Bottleneck, RunParts
from tilewright.records.run.part import BlockKind, ChannelUse, ResourceUse

_KINDS: Mapping[ServerKind, BlockKind] = {
    ServerKind.CPU: "unit",
    ServerKind.GEMM: "unit",
    ServerKind.VECTOR: "unit",
    ServerKind.TCM_PORT: "unit",
    ServerKind.LINK: "link",
    ServerKind.MEMORY: "memory",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """At one time: how long each server had been in use; refresh is use of a memory."""

    at_ps: int
    used_ps: Mapping[int, int]  # by server; of a memory the mean of its pseudo-channels
    channels: Mapping[int, tuple[ChannelCounters, ...]] = field(default_factory=dict)  # by memory
    openings: Mapping[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """By memory, pseudo-channel and bank: rows that were opened."""

    @classmethod
    def now(cls, device: Device) -> "Usage":
        """Of all servers that there are by now."""
        engine = device.engine
        used_ps = dict(enumerate(engine.busy_ps()))
        found: dict[int, tuple[ChannelCounters, ...]] = {}
        openings: dict[int, tuple[tuple[int, ...], ...]] = {}
        if device.machine.spec.cube.hbm.impl is None:
            for server in device.memories.values():
                channels = found[server] = engine.memory_counters(server)
                openings[server] = engine.memory_openings(server)
                total_ps = sum(channel.busy_ps + channel.refresh_ps for channel in channels)
                used_ps[server] = total_ps // len(channels)
        return cls(engine.now_ps, used_ps, found, openings)


@dataclass(frozen=True, slots=True)
class UsedBlock:
    """A unit, link or memory, and the share of the time that it was in use."""

    name: str
    kind: BlockKind
    share: float


def most_used(before: Usage, after: Usage, servers: ServerTable, num: int) -> list[UsedBlock]:
    """The most used blocks of the time in between, the busiest first."""
    span_ps = after.at_ps - before.at_ps
    if span_ps <= 0:
        return []
    found = []
    for number, used_ps in after.used_ps.items():
        kind = _KINDS.get(servers[number].kind)
        gained_ps = used_ps - before.used_ps.get(number, 0)
        if kind is not None and gained_ps > 0:
            # work that lies ahead is counted at its start, so a share may come to more than all
            share = min(1.0, gained_ps / span_ps)
            found.append(UsedBlock(servers[number].name, kind, share))
    return sorted(found, key=lambda block: (-block.share, block.name))[:num]


def bottleneck_of(parts: RunParts, blocks: Sequence[UsedBlock], total_ps: int) -> Bottleneck | None:
    """Return whatever had the greatest share, of equal ones a block; None if no part took time."""
    part, part_ps = max(parts.by_name().items(), key=lambda item: item[1])
    if not part_ps:
        return None
    share = part_ps / total_ps
    busiest = max(blocks, key=lambda block: block.share, default=None)
    if busiest is not None and busiest.share >= share:
        return Bottleneck(kind=busiest.kind, name=busiest.name, share=busiest.share)
    return Bottleneck(kind="part", name=part, share=share)


def resource_use(before: Usage, after: Usage, servers: ServerTable) -> tuple[ResourceUse, ...]:
    """Return one row a field, the one with the busiest instance first."""
    span_ps = after.at_ps - before.at_ps
    found: dict[str, dict[str, int]] = {}
    if span_ps <= 0:
        return ()
    for number, used_ps in after.used_ps.items():
        server = servers[number]
        if not server.rate_field:
            continue
        busy = found.setdefault(server.rate_field, {})
        if number in after.channels:
            for index, busy_ps in enumerate(_channels_ps(before, after, number)):
                busy[f"{server.name} pseudo-channel {index}"] = busy_ps
        else:
            busy[server.name] = used_ps - before.used_ps.get(number, 0)
    rows = [_row(field, busy, span_ps) for field, busy in found.items() if max(busy.values()) > 0]
    return tuple(sorted(rows, key=lambda row: (-row.busy_ps, row.field)))


def _row(field: str, busy: dict[str, int], span_ps: int) -> ResourceUse:
    """Work that lies ahead is counted at its start, so that it may come to more than the span."""
    used = {name: min(each_ps, span_ps) for name, each_ps in busy.items() if each_ps > 0}
    busiest = max(used, key=lambda name: used[name])
    shares = [each_ps / span_ps for each_ps in used.values()]
    return ResourceUse(
        field=field,
        num_used=len(used),
        busiest=busiest,
        busy_ps=used[busiest],
        greatest=used[busiest] / span_ps,
        median=median(shares),
        mean=mean(shares),
    )


def channel_use(before: Usage, after: Usage, servers: ServerTable) -> ChannelUse | None:
    """Return the channels of the slice that has the busiest one; None: no slice was used."""
    span_ps = after.at_ps - before.at_ps
    slices = [number for number in after.channels if isinstance(servers[number].memory, BankedSpec)]
    used = {number: _channels_ps(before, after, number) for number in slices}
    used = {number: busy for number, busy in used.items() if max(busy) > 0}
    if not used or span_ps <= 0:
        return None
    number = max(used, key=lambda number: (max(used[number]), -number))
    busy, memory = used[number], servers[number].memory
    busiest = busy.index(max(busy))
    earlier = before.channels.get(number, ())
    hits, bursts = (
        sum(getattr(channel, name) for channel in after.channels[number])
        - sum(getattr(channel, name) for channel in earlier)
        for name in ("row_hits", "num_bursts")
    )
    return ChannelUse(
        memory=servers[number].name,
        shares=tuple(min(1.0, each_ps / span_ps) for each_ps in busy),
        row_hits=hits,
        row_misses=bursts - hits,
        banks=_openings(before, after, number, busiest),
        row_cycle_ps=memory.timing.rc_ps if isinstance(memory, BankedSpec) else 0,
    )


def _openings(before: Usage, after: Usage, number: int, channel: int) -> tuple[int, ...]:
    """Return how many rows each bank of a pseudo-channel opened in between."""
    opened = after.openings[number][channel]
    earlier = before.openings.get(number)
    earlier_opened = (0,) * len(opened) if earlier is None else earlier[channel]
    return tuple(late - early for late, early in zip(opened, earlier_opened, strict=True))


def _channels_ps(before: Usage, after: Usage, number: int) -> list[int]:
    """Return how long each channel of a memory moved data."""
    busy_ps = [channel.busy_ps for channel in after.channels[number]]
    for index, channel in enumerate(before.channels.get(number, ())):
        busy_ps[index] -= channel.busy_ps
    return [max(0, each_ps) for each_ps in busy_ps]
