"""One cube's HBM stack; the defaults are HBM4 at 8 Gb/s per pin."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal, get_args

from pydantic import Field

from tilewright.limits import (
    MAX_BANKS,
    MAX_CHUNK_BURSTS,
    MAX_DISTANCE_PS,
    MAX_SPAN_BURSTS,
    MapField,
    min_refresh_interval_ps,
)
from tilewright.machine.spec.field import (
    MAX_CLOCKS,
    MAX_COUNT,
    BlockSpec,
    BrokenRule,
    BytesPerUs,
    Clocks,
    Count,
    Latency,
    PositiveTime,
    Size,
    Spec,
    is_power_of_two,
)
from tilewright.units import PS_PER_US


class HbmTimingSpec(Spec):
    """Least distances between commands, in clocks of ``clock_ps``; the names are JEDEC's."""

    clock_ps: Annotated[PositiveTime, Field(le=MAX_DISTANCE_PS // MAX_CLOCKS)] = Field(
        500, description="one clock"
    )
    bl_clocks: Annotated[Clocks, Field(ge=1)] = Field(2, description="data of one burst")
    cl_clocks: Clocks = Field(20, description="read command to its first data")
    cwl_clocks: Clocks = Field(10, description="write command to its first data")
    rcd_read_clocks: Clocks = Field(39, description="activate to read")
    rcd_write_clocks: Clocks = Field(19, description="activate to write")
    rp_clocks: Clocks = Field(33, description="precharge to activate")
    ras_clocks: Clocks = Field(57, description="activate to precharge")
    rc_clocks: Clocks = Field(90, description="activate to activate, one bank")
    ccd_s_clocks: Annotated[Clocks, Field(ge=1)] = Field(
        2, description="column to column, other bank group"
    )
    ccd_l_clocks: Annotated[Clocks, Field(ge=1)] = Field(
        4, description="column to column, same bank group"
    )
    ccd_r_clocks: Annotated[Clocks, Field(ge=1)] = Field(
        2, description="column to column, other stack id"
    )
    rrd_s_clocks: Clocks = Field(5, description="activate to activate, other bank group")
    rrd_l_clocks: Clocks = Field(7, description="activate to activate, same bank group")
    faw_clocks: Clocks = Field(30, description="window that holds at most four activates")
    wtr_s_clocks: Clocks = Field(9, description="end of write data to read, other bank group")
    wtr_l_clocks: Clocks = Field(13, description="end of write data to read, same bank group")
    rtw_clocks: Clocks = Field(25, description="read command to write command")
    wr_clocks: Clocks = Field(42, description="end of write data to precharge")
    rtp_clocks: Annotated[Clocks, Field(ge=1)] = Field(12, description="read command to precharge")

    @property
    def distances_ps(self) -> dict[str, int]:
        """Every distance in picoseconds, ``rp_ps`` for instance."""
        clocks = self.model_dump(exclude={"clock_ps"})
        return {
            name.removesuffix("_clocks") + "_ps": count * self.clock_ps
            for name, count in clocks.items()
        }

    def broken_rules(self) -> Iterator[BrokenRule]:
        for name in ("ccd_s_clocks", "ccd_l_clocks", "ccd_r_clocks"):
            clocks = getattr(self, name)
            if clocks < self.bl_clocks:
                found = f"{clocks} with bl_clocks {self.bl_clocks}"
                expected = "at least bl_clocks, or data of two bursts would overlap"
                yield BrokenRule(name, found, expected, f"raise {name}", ("bl_clocks",))


class RefreshSpec(Spec):
    """All-bank refresh closes all banks of a channel; per-bank closes one bank after the other."""

    kind: Literal["all_bank", "per_bank", "none"] = Field("all_bank", description="what it closes")
    interval_ps: PositiveTime = Field(3_900_000, description="REFI, from one refresh to the next")
    all_bank_ps: PositiveTime = Field(530_000, description="RFC of an all-bank refresh")
    per_bank_ps: PositiveTime = Field(280_000, description="RFC of one bank")
    phase_ps: Latency = Field(
        0,
        description="delay of every slice's refreshes, modulo one interval; 0 to have them first"
        " at (slice + 1) / slices of it",
    )

    @property
    def busy_ps(self) -> int:
        """How long one refresh closes what it closes; 0 if nothing is refreshed."""
        return 0 if self.kind == "none" else int(getattr(self, f"{self.kind}_ps"))

    def broken_rules(self) -> Iterator[BrokenRule]:
        if self.kind != "none" and self.busy_ps >= self.interval_ps:
            found = f"{self.busy_ps} with interval_ps {self.interval_ps}"
            expected, fix = "less than interval_ps, or the memory never opens", "raise interval_ps"
            yield BrokenRule(f"{self.kind}_ps", found, expected, fix, ("interval_ps", "kind"))


class HbmSpec(BlockSpec):
    """A stack cut into one slice per PE; a slice owns ``pseudo_channels / pes`` of them."""

    model: Literal["detailed", "simple"] = Field(
        "detailed", description="banks, rows and refresh; or only a rate and a latency"
    )
    capacity_bytes: Size = Field(48 * 2**30, description="one stack")
    pseudo_channels: Count = Field(64, description="of one stack, dealt over its slices")
    bank_groups: Count = Field(2, description="per stack id of a pseudo-channel")
    banks: Count = Field(8, description="per bank group")
    stack_ids: Count = Field(2, description="ranks that share a pseudo-channel")
    row_bytes: Size = Field(1_024, description="one row of one bank")
    burst_bytes: Size = Field(32, description="one column access")
    interleave_bytes: Size = Field(
        256, description="consecutive bytes of a slice in one pseudo-channel"
    )
    address_map: tuple[MapField, ...] = Field(
        ("burst", "bank_group", "column", "bank", "stack_id", "row"),
        description="from the lowest bit, inside a pseudo-channel",
    )
    timing: HbmTimingSpec = HbmTimingSpec()
    refresh: RefreshSpec = RefreshSpec()
    read_queue_bursts: Count = Field(128, description="read queue of a pseudo-channel")
    write_queue_bursts: Count = Field(128, description="write queue of a pseudo-channel")
    drain_high_bursts: Count = Field(96, description="queued writes that start a write drain")
    drain_low_bursts: Annotated[int, Field(ge=0, le=MAX_COUNT)] = Field(
        32, description="queued writes at which a drain ends"
    )
    simple_latency_ps: Latency = Field(8_000, description="of the simple model, per access")
    simple_efficiency_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        100, description="of the simple model, share of the nominal rate"
    )
    buffer_bytes: Size = Field(8_192, description="the controller's input buffer, per channel")

    @property
    def burst_ps(self) -> int:
        """Time of one burst on the data bus."""
        return self.timing.bl_clocks * self.timing.clock_ps

    @property
    def counted_bytes(self) -> int:
        """Bytes of what a pseudo-channel serves and counts: a burst; a byte of the simple model."""
        return self.burst_bytes if self.model == "detailed" else 1

    @property
    def channel_rate(self) -> Fraction:
        """Nominal bytes per microsecond of a pseudo-channel, exactly: burst after burst."""
        return Fraction(self.burst_bytes * PS_PER_US, self.burst_ps)

    @property
    def simple_bytes_per_us(self) -> int:
        """What a pseudo-channel of the simple model serves, rounded down."""
        return int(self.channel_rate * self.simple_efficiency_percent / 100)

    def least_access_ps(self, *, is_write: bool, opens: bool) -> int:
        """Return the time of one burst without refresh; of the simple model the latency alone."""
        if self.model == "simple":
            return self.simple_latency_ps
        timing = self.timing
        opening = timing.rcd_write_clocks if is_write else timing.rcd_read_clocks
        column = timing.cwl_clocks if is_write else timing.cl_clocks
        return (opens * opening + column + timing.bl_clocks) * timing.clock_ps

    @property
    def is_banked(self) -> bool:
        """Whether the engine's banked memory serves it, and neither a simple one nor a user's."""
        return self.impl is None and self.model == "detailed"

    @property
    def num_banks(self) -> int:
        """Banks of a pseudo-channel."""
        return self.bank_groups * self.banks * self.stack_ids

    def broken_rules(self) -> Iterator[BrokenRule]:
        yield from self._shape_rules()
        yield from self._queue_rules()
        yield from self._map_rules()
        if self.is_banked:
            yield from self._bank_rules()
            yield from self._refresh_rules()
        elif self.impl is None:
            yield from self._simple_rules()

    def _shape_rules(self) -> Iterator[BrokenRule]:
        for name in (
            "bank_groups",
            "banks",
            "stack_ids",
            "row_bytes",
            "burst_bytes",
            "interleave_bytes",
        ):
            if not is_power_of_two(getattr(self, name)):
                expected, fix = "a power of two", "an address has whole bits for it; round it"
                yield BrokenRule(name, str(getattr(self, name)), expected, fix)
        for name in ("row_bytes", "interleave_bytes"):
            if getattr(self, name) < self.burst_bytes:
                found = f"{getattr(self, name)} with burst_bytes {self.burst_bytes}"
                fix = f"raise {name} or lower burst_bytes"
                yield BrokenRule(name, found, "at least one burst", fix, ("burst_bytes",))
        span_bytes = max(self.num_banks * self.row_bytes, self.interleave_bytes)
        unit_bytes = self.pseudo_channels * span_bytes
        if self.capacity_bytes % unit_bytes:
            channels = f"{self.pseudo_channels} channels of {self.num_banks} banks"
            found = f"{self.capacity_bytes} over {channels}"
            expected = f"whole rows in every bank: a multiple of {unit_bytes} bytes"
            shape = ("pseudo_channels", "bank_groups", "banks", "stack_ids", "row_bytes")
            yield BrokenRule("capacity_bytes", found, expected, "round it", shape)

    def _map_rules(self) -> Iterator[BrokenRule]:
        names = get_args(MapField)
        if sorted(self.address_map) != sorted(names):
            found = ", ".join(self.address_map) or "no field"
            expected = f"each of {', '.join(names)} once"
            yield BrokenRule("address_map", found, expected, "list the six, lowest bit first")
        elif self.address_map[0] != "burst":
            found, fix = f"{self.address_map[0]} first", "put burst first"
            expected = "burst first, since its bytes are adjacent"
            yield BrokenRule("address_map", found, expected, fix)
        elif self.is_banked and self.address_map[-1] != "row":
            found, fix = f"{self.address_map[-1]} last", "put row last"
            expected = "row last: the highest bits of an address"
            yield BrokenRule("address_map", found, expected, fix, ("model",))

    def _simple_rules(self) -> Iterator[BrokenRule]:
        if self.simple_bytes_per_us < 1:
            found = f"{self.simple_efficiency_percent} % of {self.burst_bytes} bytes"
            found += f" every {self.burst_ps} ps"
            fix = "raise it or burst_bytes, or lower the burst's clocks"
            related = ("burst_bytes", "timing.bl_clocks", "timing.clock_ps")
            path = "simple_efficiency_percent"
            yield BrokenRule(path, found, "a rate of at least 1 byte a microsecond", fix, related)

    def _bank_rules(self) -> Iterator[BrokenRule]:
        shape = ("bank_groups", "stack_ids")
        if self.num_banks > MAX_BANKS:
            found = f"{self.num_banks} in a pseudo-channel: bank_groups x banks x stack_ids"
            fix = "lower banks, bank_groups or stack_ids"
            yield BrokenRule("banks", found, f"at most {MAX_BANKS}", fix, shape)
        span_bytes = self.num_banks * self.row_bytes
        if self.interleave_bytes > span_bytes:
            found = f"{self.interleave_bytes} with {span_bytes} bytes in one row of all banks"
            expected, fix = "at most one row of all banks", "lower interleave_bytes"
            related = ("row_bytes", "banks", *shape)
            yield BrokenRule("interleave_bytes", found, expected, fix, related)
        for name, num_bytes, most in (
            ("row_bytes", span_bytes, MAX_SPAN_BURSTS),
            ("interleave_bytes", self.interleave_bytes, MAX_CHUNK_BURSTS),
        ):
            if num_bytes > most * self.burst_bytes:
                what = "in one row of all banks" if name == "row_bytes" else "of a pseudo-channel"
                found = f"{num_bytes // self.burst_bytes} bursts {what}"
                fix = f"lower {name} or raise burst_bytes"
                yield BrokenRule(name, found, f"at most {most}", fix, ("burst_bytes",))

    def _refresh_rules(self) -> Iterator[BrokenRule]:
        """An interval holds a refresh, the closing before it and one access after it."""
        refresh, timing = self.refresh, self.timing
        least_ps = min_refresh_interval_ps(timing.distances_ps, refresh.busy_ps)
        if refresh.kind == "none" or refresh.interval_ps > least_ps:
            return
        clocks = timing.model_dump(exclude={"clock_ps"})
        longest = max(clocks, key=lambda name: clocks[name])
        found = (
            f"{refresh.interval_ps} for a refresh of {refresh.busy_ps} ps and an access, whose "
            f"waits take {least_ps - refresh.busy_ps} ps ({longest} {clocks[longest]}, and others)"
        )
        expected = f"above {least_ps}, so that both fit"
        fix = f"raise interval_ps, or lower {refresh.kind}_ps or {longest}"
        refresh_fields = (f"refresh.{refresh.kind}_ps", "refresh.kind")
        related = (*refresh_fields, *(f"timing.{name}" for name in HbmTimingSpec.model_fields))
        yield BrokenRule("refresh.interval_ps", found, expected, fix, related)

    def _queue_rules(self) -> Iterator[BrokenRule]:
        low, high, most = self.drain_low_bursts, self.drain_high_bursts, self.write_queue_bursts
        if low >= high:
            found, fix = f"{low} with drain_high_bursts {high}", "lower drain_low_bursts"
            expected = "less than drain_high_bursts"
            yield BrokenRule("drain_low_bursts", found, expected, fix, ("drain_high_bursts",))
        if high > most:
            found, fix = f"{high} with write_queue_bursts {most}", "lower drain_high_bursts"
            expected = "at most write_queue_bursts"
            yield BrokenRule("drain_high_bursts", found, expected, fix, ("write_queue_bursts",))


class SramSpec(BlockSpec):
    """The shared memory of a cube."""

    capacity_bytes: Size = Field(32 * 2**20, description="one cube")
    bytes_per_us: BytesPerUs = Field(128_000, description="its link to the router, each way")
    access_ps: Latency = Field(2_000, description="of one access")
    buffer_bytes: Size = Field(4_096, description="input buffer per virtual channel")
