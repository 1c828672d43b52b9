"""HBM4 and HBM3 against their data sheets: latencies, rates, refresh, causes of loss. HB1 to HB10.

Expected figures are those of the standard's parameters, worked out by hand; none of them is read
from the machine files that are tested.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from tilewright.device.memory import slice_spec
from tilewright.engine import EngineKind
from tilewright.engine.dram.spec import BankedSpec
from tilewright.limits import MapField
from tilewright.units import PS_PER_NS
from tilewright.validation.finding import (
    Check,
    Finding,
    Row,
    Times,
    at_least,
    at_most,
    exact,
    printed,
    ramp,
    rate_inside,
)
from tilewright.validation.hbm.run import (
    Access,
    StreamRun,
    address_of,
    burst_ends_ps,
    channel_memory,
    hbm_spec,
    run_accesses,
    stream_rate,
)

GB = "GB/s"
BURST = 32
CHUNK = 256
LATER_PS = 1_000_000  # long after the first access
INTERVAL_PS = 3_900_000
COUNT = 4_000  # accesses of a stream without refresh
LONG_INTERVALS, SHORT_INTERVALS = 100, 10
SEED = 1
# Neighbours stay in one row, so that no other bank has a part in a measurement.
ROW_FIRST: tuple[MapField, ...] = ("burst", "column", "bank_group", "bank", "stack_id", "row")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the market. ``lost_ns`` of each refresh is RTP + RP + RCD on top of its RFC."""

    name: str
    preset: str
    hit_ps: int  # CL + BL
    closed_ps: int  # RCD + that
    conflict_ps: int  # RP + that
    peak: Fraction  # GB/s of a pseudo-channel: a burst each CCD_S
    same_group: Fraction  # a burst each CCD_L
    activates: Fraction  # four bursts each FAW
    one_bank: Fraction  # a burst each RC
    channels: int
    lost_ns: Fraction
    refreshes_ns: tuple[int, ...]
    losses: tuple[str, ...]  # as printed, in percent
    stack_peaks: tuple[str, ...]

    def loss(self, refresh_ns: int) -> Fraction:
        return (self.lost_ns + refresh_ns) * 1_000 / INTERVAL_PS


PARTS = (
    Part(
        "HBM4", "ahbm", 11_000, 30_500, 47_000,
        Fraction(32), Fraction(16), Fraction(128, 15), Fraction(32, 45),
        64, Fraction(42), (530,), ("14.667",), ("1747.6",),
    ),
    Part(
        "HBM3", "hbm3", 13_750, 33_125, 49_375,
        Fraction("25.6"), Fraction("12.8"), Fraction(128, 15), Fraction(32, 45),
        32, Fraction("41.25"), (260, 350, 450, 550),
        ("7.72", "10.03", "12.60", "15.16"), ("755.9", "737.0", "716.0", "695.0"),
    ),
)  # fmt: skip


# -- latencies -----------------------------------------------------------------------------------


def check_closed(kind: EngineKind, *, part: Part) -> Finding:
    run = run_accesses(channel_memory(part.preset), [Access(0, 0, BURST)], kind)
    return exact(part.closed_ps, int(run.done_ps[0]), "ps")


def check_second(kind: EngineKind, *, part: Part, place: str, expected: int) -> Finding:
    """How long a read of the next column or row takes, well after the first burst of its bank."""
    spec = channel_memory(part.preset)
    accesses = [Access(0, 0, BURST), Access(LATER_PS, address_of(spec, {place: 1}), BURST)]
    return exact(expected, int(run_accesses(spec, accesses, kind).done_ps[1]) - LATER_PS, "ps")


# -- rates without refresh -----------------------------------------------------------------------

Place = Callable[[BankedSpec, int], dict[str, int]]


def in_rotation(spec: BankedSpec, number: int) -> dict[str, int]:
    """The next bank group each time, along the rows."""
    column, group = divmod(number, spec.bank_groups)
    return {"bank_group": group} | _along(spec, column)


def in_one_group(spec: BankedSpec, number: int) -> dict[str, int]:
    """Along the rows of one bank group of one stack id."""
    return _along(spec, number)


def in_all_banks(spec: BankedSpec, number: int) -> dict[str, int]:
    """The next bank each time, and never a row again."""
    row, bank = divmod(number, spec.num_banks)
    bank, group = divmod(bank, spec.bank_groups)
    stack_id, bank = divmod(bank, spec.banks)
    return {"bank_group": group, "bank": bank, "stack_id": stack_id, "row": row}


def in_one_bank(_spec: BankedSpec, number: int) -> dict[str, int]:
    """One bank, and never a row again."""
    return {"row": number}


def _along(spec: BankedSpec, number: int) -> dict[str, int]:
    bank, column = divmod(number, spec.row_bytes // spec.burst_bytes)
    row, bank = divmod(bank, spec.banks)
    return {"column": column, "bank": bank, "row": row}


def check_rate(kind: EngineKind, *, part: Part, place: Place, expected: Fraction) -> Finding:
    spec = channel_memory(part.preset)
    places = (place(spec, number) for number in range(COUNT))
    accesses = [Access(0, address_of(spec, each), BURST) for each in places]
    return ramp(expected, stream_rate(run_accesses(spec, accesses, kind), BURST), GB)


# -- refresh -------------------------------------------------------------------------------------


def check_loss(kind: EngineKind, *, part: Part, refresh_ns: int, figure: str) -> Finding:
    """One row, read again and again over a hundred intervals: what refresh takes of its time."""
    spec = replace(channel_memory(part.preset, refresh_ns), address_map=ROW_FIRST)
    most_bytes = (LONG_INTERVALS + 2) * INTERVAL_PS * part.same_group / PS_PER_NS
    accesses = [Access(0, 0, spec.row_bytes)] * int(most_bytes / spec.row_bytes)
    done_ps = run_accesses(spec, accesses, kind).done_ps
    rate = _rate_inside(done_ps, spec.row_bytes, LONG_INTERVALS)
    return ramp(Fraction(figure), 100 * (1 - rate / part.same_group), "%")


def check_stream_loss(kind: EngineKind, *, part: Part, refresh_ns: int) -> Finding:
    """A stream over all banks opens several of them again, so it never loses less."""
    spec = channel_memory(part.preset, refresh_ns)
    rate = _refreshed_rate((spec,), part, LONG_INTERVALS, kind)
    return at_least(100 * part.loss(refresh_ns), 100 * (1 - rate / part.peak), "%")


def check_stack(kind: EngineKind, *, part: Part, refresh_ns: int, figure: str) -> Finding:
    """All slices of a stack at once, as the machine deals them out."""
    spec = hbm_spec(part.preset, refresh_ns=refresh_ns)
    num_slices = 8
    slices = [slice_spec(spec, number, num_slices) for number in range(num_slices)]
    memories = tuple(each for each in slices if isinstance(each, BankedSpec))
    return ramp(Fraction(figure), _refreshed_rate(memories, part, SHORT_INTERVALS, kind), GB)


@lru_cache(maxsize=16)
def _refreshed_rate(
    memories: tuple[BankedSpec, ...], part: Part, intervals: int, kind: EngineKind
) -> Fraction:
    """GB/s of read streams over whole intervals, the first of which has begun with a refresh."""
    channels = memories[0].pseudo_channels
    peak_bytes = (intervals + 2) * INTERVAL_PS * part.peak / PS_PER_NS
    packet_bytes = CHUNK * min(channels, 4)
    num_bytes = int(peak_bytes) * channels // packet_bytes * packet_bytes
    done_ps = burst_ends_ps(memories, num_bytes, kind, packet_bytes=packet_bytes)
    return _rate_inside(done_ps, packet_bytes, intervals)


def _rate_inside(done_ps: Times, num_bytes: int, intervals: int) -> Fraction:
    """GB/s of equal accesses over whole intervals; the first of them begins with a refresh."""
    return rate_inside(done_ps, num_bytes, INTERVAL_PS, (1 + intervals) * INTERVAL_PS)


def check_printed_loss(_kind: EngineKind, *, part: Part, refresh_ns: int, figure: str) -> Finding:
    """The closed form itself, as it is printed."""
    return printed(figure, 100 * part.loss(refresh_ns), "%")


# -- any pattern ---------------------------------------------------------------------------------


def _pattern(name: str, spec: BankedSpec, generator: np.random.Generator) -> list[Access]:
    """Accesses that are all there at the start, of one of the kinds in PATTERNS."""
    count, num_bytes = 6_000, CHUNK
    last = spec.capacity_bytes // CHUNK
    in_order = np.arange(count)
    chunks = generator.integers(0, last, count) if name.startswith("random") else in_order
    writes = {"writes": 1.0, "reads and writes": 0.5, "random reads and writes": 0.5}
    is_write = generator.random(count) < writes.get(name, 0.0)
    return [
        Access(0, chunk * CHUNK, num_bytes, write)
        for chunk, write in zip(chunks.tolist(), is_write.tolist(), strict=True)
    ]


PATTERNS = ("reads", "writes", "reads and writes", "random reads", "random reads and writes")


@lru_cache(maxsize=16)
def _pattern_run(part: Part, name: str, kind: EngineKind) -> StreamRun:
    spec = channel_memory(part.preset, part.refreshes_ns[0])
    accesses = _pattern(name, spec, np.random.default_rng(SEED))
    return run_accesses(spec, accesses, kind)


def check_causes(kind: EngineKind, *, part: Part, name: str) -> Finding:
    """Time that is neither data nor one of the five causes of loss."""
    unexplained_ps = 0
    for channel in _pattern_run(part, name, kind).counters:
        causes_ps = channel.idle_ps + channel.refresh_ps + channel.turnaround_ps
        causes_ps += channel.bank_group_ps + channel.row_ps
        unexplained_ps += abs(channel.window_ps - channel.busy_ps - causes_ps)
    return exact(0, unexplained_ps, "ps")


def check_peak(kind: EngineKind, *, part: Part, name: str) -> Finding:
    """What a pattern moves in whole intervals, never more than refresh leaves of the peak."""
    done_ps = _pattern_run(part, name, kind).done_ps
    intervals = int(done_ps.max()) // INTERVAL_PS - 1
    moved = _rate_inside(done_ps, CHUNK, intervals)
    return at_most(part.peak * (1 - part.loss(part.refreshes_ns[0])), moved, GB)


# -- the table -----------------------------------------------------------------------------------


def _rows(part: Part) -> Iterator[tuple[str, Check]]:
    second = partial(check_second, part=part)
    yield "HB1 {} read, row open", partial(second, place="column", expected=part.hit_ps)
    yield "HB2 {} read, bank closed", partial(check_closed, part=part)
    yield "HB3 {} read, another row open", partial(second, place="row", expected=part.conflict_ps)
    for name, place, expected in (
        ("HB4 {} stream over bank groups", in_rotation, part.peak),
        ("HB5 {} stream in one bank group", in_one_group, part.same_group),
        ("HB6 {} a burst for each activate", in_all_banks, part.activates),
        ("HB7 {} one bank, always a new row", in_one_bank, part.one_bank),
    ):
        yield name, partial(check_rate, part=part, place=place, expected=expected)
    for refresh_ns, loss, peak in zip(
        part.refreshes_ns, part.losses, part.stack_peaks, strict=True
    ):
        law = partial(check_printed_loss, part=part, refresh_ns=refresh_ns, figure=loss)
        yield f"HB8 {{}} loss by a refresh of {refresh_ns} ns, closed form", law
        one_row = partial(check_loss, part=part, refresh_ns=refresh_ns, figure=loss)
        yield f"HB8 {{}} loss by a refresh of {refresh_ns} ns, one row", one_row
        stream = partial(check_stream_loss, part=part, refresh_ns=refresh_ns)
        yield f"HB8 {{}} loss by a refresh of {refresh_ns} ns, stream", stream
        stack = partial(check_stack, part=part, refresh_ns=refresh_ns, figure=peak)
        yield f"HB9 {{}} stack with a refresh of {refresh_ns} ns", stack
    for name in PATTERNS:
        yield f"HB10 {{}} {name}: unexplained time", partial(check_causes, part=part, name=name)
        yield f"HB10 {{}} {name}: below the peak", partial(check_peak, part=part, name=name)


def oracles() -> Iterator[Row]:
    for part in PARTS:
        yield from ((name.format(part.name), check) for name, check in _rows(part))
