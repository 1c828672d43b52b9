"""What an engine can simulate: its largest sizes and times, and what a banked memory needs.

Machine files and specs of the engine are checked against the same numbers and functions. So a
machine that cannot run is refused where its file is read.
"""

from collections.abc import Mapping
from typing import Literal

__all__ = (
    "MAX_BANKS",
    "MAX_CHANNELS",
    "MAX_CHUNK_BURSTS",
    "MAX_DISTANCE_PS",
    "MAX_FLIT_BYTES",
    "MAX_PACKETS",
    "MAX_PACKET_FLITS",
    "MAX_SPAN_BURSTS",
    "MapField",
    "max_channel_bursts",
    "min_refresh_interval_ps",
)

MapField = Literal["burst", "bank_group", "column", "bank", "stack_id", "row"]
"""A part of an address inside a pseudo-channel."""

MAX_DISTANCE_PS = 2**40  # of a time that the hardware has: about a second
MAX_FLIT_BYTES = 2**20
MAX_PACKET_FLITS = 2**20
MAX_PACKETS = 2**24  # of one transfer, and of one window
MAX_CHANNELS = 1024  # pseudo-channels of one memory
MAX_BANKS = 64  # of a pseudo-channel: the native core keeps them as bits of a word
MAX_SPAN_BURSTS = 2**20  # in one row of all banks: the engine has a table of them
MAX_CHUNK_BURSTS = 2**12  # in interleave_bytes


def max_channel_bursts(
    *, packet_bytes: int, interleave_bytes: int, burst_bytes: int, num_channels: int
) -> int:
    """Return the most bursts that one packet brings to one pseudo-channel, wherever it begins.

    >>> max_channel_bursts(
    ...     packet_bytes=1024, interleave_bytes=256, burst_bytes=32, num_channels=8
    ... )
    8
    """
    round_bytes = interleave_bytes * num_channels
    num_rounds, rest_bytes = divmod(packet_bytes, round_bytes)
    most_bytes = num_rounds * interleave_bytes + min(interleave_bytes, rest_bytes)
    # a packet that begins and ends in one channel may cut a burst of it in two
    ends_meet = num_rounds > 0 and rest_bytes < interleave_bytes
    cuts_burst = ends_meet or rest_bytes > round_bytes - burst_bytes
    return -(-most_bytes // burst_bytes) + int(cuts_burst)


def min_refresh_interval_ps(distances_ps: Mapping[str, int], busy_ps: int) -> int:
    """Return the interval above which a refresh and one access after it always fit.

    ``distances_ps`` are JEDEC's least distances between commands by name, ``rp_ps`` for instance.
    """
    at = distances_ps
    write_ps = at["cwl_ps"] + at["bl_ps"] + at["wr_ps"]
    close_ps = max(at["ras_ps"], at["rtp_ps"], write_ps) + at["rp_ps"]
    open_ps = at["rc_ps"] + at["faw_ps"] + at["rrd_l_ps"] + at["rrd_s_ps"]
    return close_ps + busy_ps + open_ps + max(at["rcd_read_ps"], at["rcd_write_ps"])
