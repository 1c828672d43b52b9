"""Rates of the host link, by generation, lanes and framing."""

from fractions import Fraction

from tilewright.machine.spec import PcieSpec
from tilewright.units import PS_PER_US, flit_ps

# megatransfers per second of a lane, and payload bits per line bit
_MT_PER_S = {1: 2_500, 2: 5_000, 3: 8_000, 4: 16_000, 5: 32_000}
_CODE = {
    1: Fraction(8, 10),
    2: Fraction(8, 10),
    3: Fraction(128, 130),
    4: Fraction(128, 130),
    5: Fraction(128, 130),
}


def pcie_raw_rate(pcie: PcieSpec) -> Fraction:
    """Bytes per microsecond after line coding, exactly.

    >>> float(round(pcie_raw_rate(PcieSpec()), 1))
    63015.4
    """
    return _MT_PER_S[pcie.generation] * pcie.lanes * _CODE[pcie.generation] / 8


def pcie_payload_rate(pcie: PcieSpec) -> Fraction:
    """Bytes of payload per microsecond, exactly: every packet carries its overhead too."""
    framed_bytes = pcie.payload_bytes + pcie.overhead_bytes
    return pcie_raw_rate(pcie) * Fraction(pcie.payload_bytes, framed_bytes)


def pcie_bytes_per_us(pcie: PcieSpec, *, flit_bytes: int) -> int:
    """The integer rate whose flit time is the exact one, rounded up to a picosecond.

    The engine's flit time of a rate ``r`` is ``ceil(flit / r)``; wanted is ``T = ceil(flit / x)``
    for the exact payload rate ``x``. The rates of flit time ``T`` are ``flit/T <= r < flit/(T-1)``.
    ``floor(x)`` lies below that upper end, so it is never early; if it is too slow, the next
    integer is taken when it is still in the range. For narrow links of old generations the range
    holds no integer, and the flit is late by less than ``1/floor(x)`` of its time.
    """
    exact = pcie_payload_rate(pcie)
    wanted_ps = -(-flit_bytes * PS_PER_US // exact)
    below = max(1, exact.numerator // exact.denominator)
    if flit_ps(flit_bytes=flit_bytes, bytes_per_us=below + 1) == wanted_ps:
        is_late = flit_ps(flit_bytes=flit_bytes, bytes_per_us=below) != wanted_ps
        return below + is_late
    return below
