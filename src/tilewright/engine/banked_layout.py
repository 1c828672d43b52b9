"""Where the bytes of an access lie: its chunks, their pseudo-channels, banks and rows."""

from collections.abc import Iterator
from dataclasses import astuple
from functools import lru_cache
from typing import NamedTuple

from tilewright.engine.banked_spec import BankedSpec, MapField, RefreshScope
from tilewright.errors import EngineError
from tilewright.limits import max_channel_bursts


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


def bank_table(spec: BankedSpec) -> tuple[int, ...]:
    """The bank of every burst of one row of all banks; banks of a group are neighbours."""
    columns = spec.row_bytes // spec.burst_bytes
    sizes = (spec.bank_groups, columns, spec.banks, spec.stack_ids)
    return _bank_table(sizes, spec.address_map)


@lru_cache
def _bank_table(
    sizes: tuple[int, int, int, int], address_map: tuple[MapField, ...]
) -> tuple[int, ...]:
    bank_groups, columns, num_banks, stack_ids = sizes
    size_of = {
        "bank_group": bank_groups,
        "column": columns,
        "bank": num_banks,
        "stack_id": stack_ids,
    }
    banks = []
    for burst in range(bank_groups * columns * num_banks * stack_ids):
        digits = {}
        rest = burst
        for field in address_map[1:-1]:
            rest, digits[field] = divmod(rest, size_of[field])
        group = digits["stack_id"] * bank_groups + digits["bank_group"]
        banks.append(group * num_banks + digits["bank"])
    return tuple(banks)


def banked_numbers(spec: BankedSpec) -> list[int]:
    """A spec as the native core takes it, in the order of ``csrc/banked.hpp``."""
    refresh = spec.refresh
    turns = 0
    if refresh is not None:
        turns = spec.num_banks if refresh.scope is RefreshScope.ONE_BANK else 1
    return [
        spec.pseudo_channels,
        spec.num_groups,
        spec.banks,
        spec.bank_groups,
        spec.span_bytes,
        spec.burst_bytes,
        spec.interleave_bytes,
        spec.read_queue_bursts,
        spec.write_queue_bursts,
        spec.drain_high_bursts,
        spec.drain_low_bursts,
        turns,
        refresh.interval_ps if refresh else 0,
        refresh.first_ps if refresh else 0,
        refresh.busy_ps if refresh else 0,
        *astuple(spec.timing),
    ]


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
