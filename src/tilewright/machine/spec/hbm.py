"""One cube's HBM stack; the defaults are HBM4 at 8 Gb/s per pin."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal, get_args

from pydantic import Field

from tilewright.machine.spec.block import BlockSpec
from tilewright.machine.spec.quantity import (
    MAX_COUNT,
    BytesPerUs,
    Clocks,
    Count,
    Latency,
    PositiveTime,
    Size,
    Spec,
)
from tilewright.machine.spec.rule import BrokenRule, is_power_of_two
from tilewright.units import PS_PER_US

__all__ = ("HbmSpec", "HbmTimingSpec", "RefreshSpec", "SramSpec")

MapField = Literal["burst", "bank_group", "column", "bank", "stack_id", "row"]


class HbmTimingSpec(Spec):
    """Least distances between commands, in clocks of ``clock_ps``; the names are JEDEC's."""

    clock_ps: PositiveTime = Field(500, description="one clock")
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
    rtp_clocks: Clocks = Field(12, description="read command to precharge")

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

    def broken_rules(self) -> Iterator[BrokenRule]:
        if self.kind == "none":
            return
        name = f"{self.kind}_ps"
        closed_ps = getattr(self, name)
        if closed_ps >= self.interval_ps:
            found = f"{closed_ps} with interval_ps {self.interval_ps}"
            expected = "less than interval_ps, or the memory never opens"
            yield BrokenRule(name, found, expected, "raise interval_ps", ("interval_ps", "kind"))


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
    def channel_rate(self) -> Fraction:
        """Nominal bytes per microsecond of a pseudo-channel, exactly: burst after burst."""
        return Fraction(self.burst_bytes * PS_PER_US, self.burst_ps)

    @property
    def simple_bytes_per_us(self) -> int:
        """What a pseudo-channel of the simple model serves, rounded down."""
        return int(self.channel_rate * self.simple_efficiency_percent / 100)

    def broken_rules(self) -> Iterator[BrokenRule]:
        yield from self._shape_rules()
        yield from self._queue_rules()
        if sorted(self.address_map) != sorted(get_args(MapField)):
            found = ", ".join(self.address_map) or "no field"
            expected = f"each of {', '.join(get_args(MapField))} once"
            yield BrokenRule("address_map", found, expected, "list the six, lowest bit first")
        elif self.address_map[0] != "burst":
            found, fix = f"{self.address_map[0]} first", "put burst first"
            expected = "burst first, since its bytes are adjacent"
            yield BrokenRule("address_map", found, expected, fix)

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
        banks = self.bank_groups * self.banks * self.stack_ids
        unit_bytes = self.pseudo_channels * max(banks * self.row_bytes, self.interleave_bytes)
        if self.capacity_bytes % unit_bytes:
            found = f"{self.capacity_bytes} over {self.pseudo_channels} channels of {banks} banks"
            expected = f"whole rows in every bank: a multiple of {unit_bytes} bytes"
            shape = ("pseudo_channels", "bank_groups", "banks", "stack_ids", "row_bytes")
            yield BrokenRule("capacity_bytes", found, expected, "round it", shape)

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
