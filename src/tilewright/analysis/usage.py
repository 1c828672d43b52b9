"""How much units, links and memories were used in a span of simulated time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.analysis.trace.servers import ServerKind, ServerTable
from tilewright.device.build import Device
from tilewright.engine.statistics import ChannelCounters
from tilewright.records.run_parts import BlockKind

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
