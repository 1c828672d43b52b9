"""What a memory is: its shape, least distances in ps, queues, refresh, and where its bytes lie.

``docs/memory.md`` is the law that these numbers enter.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from enum import Enum
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

from tilewright.engine.spec import check_integer
from tilewright.errors import EngineError
from tilewright.limits import (
    MAX_BANKS,
    MAX_CHANNELS,
    MAX_CHUNK_BURSTS,
    MAX_DISTANCE_PS,
    MAX_SPAN_BURSTS,
    MapField,
    max_channel_bursts,
    min_refresh_interval_ps,
)

MAX_SIZE = 2**40
MIDDLE_FIELDS = frozenset({"bank_group", "column", "bank", "stack_id"})


class RefreshScope(Enum):
    """What one refresh closes."""

    ALL_BANKS = "all_banks"
    ONE_BANK = "one_bank"


@dataclass(frozen=True, slots=True)
class BankedTimingSpec:
    """Least distances between commands; the names are JEDEC's."""

    bl_ps: int
    cl_ps: int
    cwl_ps: int
    rcd_read_ps: int
    rcd_write_ps: int
    rp_ps: int
    ras_ps: int
    rc_ps: int
    ccd_s_ps: int
    ccd_l_ps: int
    ccd_r_ps: int
    rrd_s_ps: int
    rrd_l_ps: int
    faw_ps: int
    wtr_s_ps: int
    wtr_l_ps: int
    rtw_ps: int
    wr_ps: int
    rtp_ps: int

    def __post_init__(self) -> None:
        for field in fields(self):
            # a row is never closed at the instant of a column command of its own
            low = 1 if field.name.startswith(("bl_", "ccd_", "rtp_")) else 0
            check_integer(
                "memory timing", field.name, getattr(self, field.name), low, MAX_DISTANCE_PS
            )

    @property
    def write_end_ps(self) -> int:
        """From a write command to the end of its data."""
        return self.cwl_ps + self.bl_ps

    @property
    def read_end_ps(self) -> int:
        """From a read command to the end of its data."""
        return self.cl_ps + self.bl_ps


@dataclass(frozen=True, slots=True)
class BankedRefreshSpec:
    """Refresh ``k`` of all banks is due at ``first_ps + k interval_ps``; each takes ``busy_ps``.

    With ``ONE_BANK`` the banks take turns, so that each has its turn once in ``interval_ps``.
    """

    scope: RefreshScope
    interval_ps: int
    first_ps: int
    busy_ps: int

    def __post_init__(self) -> None:
        where = "memory refresh"
        if not isinstance(self.scope, RefreshScope):
            expected, fix = "a RefreshScope", "use RefreshScope.ALL_BANKS or ONE_BANK"
            raise EngineError(where, f"scope = {self.scope!r}", expected, fix)
        check_integer(where, "interval_ps", self.interval_ps, 1, MAX_DISTANCE_PS)
        check_integer(where, "first_ps", self.first_ps, 0, MAX_DISTANCE_PS)
        check_integer(where, "busy_ps", self.busy_ps, 1, MAX_DISTANCE_PS)

    def last_due_ps(self, at_ps: int) -> int:
        """Return when all banks were last due, not after this time."""
        return self.first_ps + (at_ps - self.first_ps) // self.interval_ps * self.interval_ps


@dataclass(frozen=True)
class BankedSpec:
    """One memory: equal pseudo-channels that share a door; ``refresh`` None: never."""

    pseudo_channels: int
    stack_ids: int
    bank_groups: int
    banks: int  # per bank group
    rows: int  # per bank
    row_bytes: int
    burst_bytes: int
    interleave_bytes: int
    address_map: tuple[MapField, ...]  # from the lowest bit, inside a pseudo-channel
    read_queue_bursts: int
    write_queue_bursts: int
    drain_high_bursts: int
    drain_low_bursts: int
    timing: BankedTimingSpec
    refresh: BankedRefreshSpec | None

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_shape()
        self._check_queues()
        self._check_refresh()

    @cached_property
    def num_groups(self) -> int:
        """Bank groups of a pseudo-channel over all stack ids."""
        return self.stack_ids * self.bank_groups

    @cached_property
    def num_banks(self) -> int:
        """Banks of a pseudo-channel."""
        return self.num_groups * self.banks

    @cached_property
    def span_bytes(self) -> int:
        """One row of every bank: consecutive bytes of a pseudo-channel."""
        return self.num_banks * self.row_bytes

    @property
    def refresh_turns(self) -> int:
        """Refreshes in one interval; 0: never."""
        if self.refresh is None:
            return 0
        return self.num_banks if self.refresh.scope is RefreshScope.ONE_BANK else 1

    @property
    def bank_table(self) -> tuple[int, ...]:
        """The bank of every burst of one row of all banks; banks of a group are neighbours."""
        columns = self.row_bytes // self.burst_bytes
        sizes = (self.bank_groups, columns, self.banks, self.stack_ids)
        return _bank_table(sizes, self.address_map)

    @property
    def capacity_bytes(self) -> int:
        return self.pseudo_channels * self.rows * self.span_bytes

    def _check_sizes(self) -> None:
        check_integer("memory", "pseudo_channels", self.pseudo_channels, 1, MAX_CHANNELS)
        for name in ("stack_ids", "bank_groups", "banks"):
            check_integer("memory", name, getattr(self, name), 1, MAX_BANKS)
        sizes = ("rows", "row_bytes", "burst_bytes", "interleave_bytes", "read_queue_bursts")
        for name in (*sizes, "write_queue_bursts", "drain_high_bursts"):
            check_integer("memory", name, getattr(self, name), 1, MAX_SIZE)
        check_integer("memory", "drain_low_bursts", self.drain_low_bursts, 0, MAX_SIZE)

    def _check_shape(self) -> None:
        _check_most("banks in a pseudo-channel", self.num_banks, MAX_BANKS)
        _check_multiple("row_bytes", self.row_bytes, "burst_bytes", self.burst_bytes)
        _check_multiple("interleave_bytes", self.interleave_bytes, "burst_bytes", self.burst_bytes)
        _check_multiple(
            "one row of all banks", self.span_bytes, "interleave_bytes", self.interleave_bytes
        )
        span_bursts = self.span_bytes // self.burst_bytes
        _check_most("bursts in one row of all banks", span_bursts, MAX_SPAN_BURSTS)
        chunk_bursts = self.interleave_bytes // self.burst_bytes
        _check_most("bursts in interleave_bytes", chunk_bursts, MAX_CHUNK_BURSTS)
        middle = self.address_map[1:-1]
        ends = (self.address_map[0], self.address_map[-1]) if self.address_map else ()
        if ends != ("burst", "row") or sorted(middle) != sorted(MIDDLE_FIELDS):
            expected = f"burst, then {', '.join(sorted(MIDDLE_FIELDS))} in any order, then row"
            found = f"the address map {self.address_map!r}"
            raise EngineError("memory", found, expected, "list every field once")

    def _check_queues(self) -> None:
        if not self.drain_low_bursts < self.drain_high_bursts <= self.write_queue_bursts:
            found = (
                f"a write drain from {self.drain_high_bursts} to {self.drain_low_bursts} bursts "
                f"in a queue of {self.write_queue_bursts}"
            )
            expected = "drain_low_bursts < drain_high_bursts <= write_queue_bursts"
            raise EngineError("memory", found, expected, "correct the three")

    def _check_refresh(self) -> None:
        """Refuse an interval in which a refresh and the access after it do not fit."""
        refresh = self.refresh
        if refresh is None:
            return
        least_ps = min_refresh_interval_ps(asdict(self.timing), refresh.busy_ps)
        if refresh.interval_ps <= least_ps:
            found = f"a refresh of {refresh.busy_ps} ps every {refresh.interval_ps} ps"
            fix = "lengthen interval_ps or shorten busy_ps"
            raise EngineError("memory", found, f"an interval above {least_ps} ps", fix)


@dataclass(frozen=True, slots=True)
class SimpleSpec:
    """A memory without banks: a rate per pseudo-channel and one latency."""

    pseudo_channels: int
    interleave_bytes: int
    bytes_per_us: int  # of one pseudo-channel
    latency_ps: int

    def __post_init__(self) -> None:
        check_integer("simple memory", "pseudo_channels", self.pseudo_channels, 1, MAX_CHANNELS)
        check_integer("simple memory", "interleave_bytes", self.interleave_bytes, 1, MAX_SIZE)
        check_integer("simple memory", "bytes_per_us", self.bytes_per_us, 1, MAX_DISTANCE_PS)
        check_integer("simple memory", "latency_ps", self.latency_ps, 0, MAX_DISTANCE_PS)


def _check_multiple(name: str, value: int, unit_name: str, unit: int) -> None:
    if value % unit:
        found, expected = f"{name} = {value}", f"a multiple of {unit_name} = {unit}"
        raise EngineError("memory", found, expected, f"correct {name} or {unit_name}")


def _check_most(what: str, value: int, most: int) -> None:
    if value > most:
        raise EngineError("memory", f"{value} {what}", f"at most {most}", "use smaller sizes")


class Piece(NamedTuple):
    """A chunk as the address map sees it: consecutive bursts of one pseudo-channel, one row."""

    channel: int
    row: int
    first_burst: int  # counted from the start of the row of all banks
    num_bursts: int


def pieces(spec: BankedSpec, address: int, num_bytes: int) -> Iterator[Piece]:
    """The chunks of an access in the order of their addresses."""
    interleave, burst = spec.interleave_bytes, spec.burst_bytes
    end = address + num_bytes
    while address < end:
        stop = min(end, (address // interleave + 1) * interleave)
        local, channel = divmod(address // interleave, spec.pseudo_channels)
        row, offset = divmod(local * interleave + address % interleave, spec.span_bytes)
        first = offset // burst
        last = (offset + stop - address - 1) // burst
        yield Piece(channel, row, first, last - first + 1)
        address = stop


@lru_cache
def _bank_table(
    sizes: tuple[int, int, int, int], address_map: tuple[MapField, ...]
) -> tuple[int, ...]:
    bank_groups, _, num_banks, _ = sizes
    size_of = dict(zip(("bank_group", "column", "bank", "stack_id"), sizes, strict=True))
    banks = []
    for burst in range(prod(sizes)):
        digits = {}
        rest = burst
        for field in address_map[1:-1]:
            rest, digits[field] = divmod(rest, size_of[field])
        group = digits["stack_id"] * bank_groups + digits["bank_group"]
        banks.append(group * num_banks + digits["bank"])
    return tuple(banks)


def check_packets(spec: BankedSpec, packet_bytes: int) -> None:
    """Refuse queues that an access of a packet, however it lies, might never fit into."""
    least = min(spec.read_queue_bursts, spec.write_queue_bursts)
    most = max_channel_bursts(
        packet_bytes=packet_bytes,
        interleave_bytes=spec.interleave_bytes,
        burst_bytes=spec.burst_bytes,
        num_channels=spec.pseudo_channels,
    )
    if least < most:
        found = f"queues of {least} bursts for packets of {packet_bytes} bytes"
        raise EngineError("memory", found, f"at least {most}", "lengthen the queues")
