"""What a UCIe module carries raw: an upper bound for the rate of a connection."""

from fractions import Fraction

from tilewright.device.size import check_size

BITS_PER_BYTE = 8


def ucie_raw_rate(lanes: int, *, megatransfers_per_s: int) -> Fraction:
    """Bytes per microsecond each way: one bit a lane and transfer, no line code.

    The default connection of 128 GB/s is a module of 32 lanes at 32 GT/s:

    >>> print(ucie_raw_rate(32, megatransfers_per_s=32_000))
    128000
    """
    check_size("ucie", "lanes", lanes)
    check_size("ucie", "megatransfers_per_s", megatransfers_per_s)
    return Fraction(lanes * megatransfers_per_s, BITS_PER_BYTE)
