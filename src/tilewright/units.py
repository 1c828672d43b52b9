"""Integer picoseconds and bytes: constants, widths, the one rounding place, text in and out.

Rates are integer bytes per microsecond: 1 GB/s is 1000 of them. Nothing here takes a float.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from tilewright.errors import UnitError

__all__ = (
    "DTYPE_BITS",
    "MAX_PS",
    "PS_PER_NS",
    "PS_PER_S",
    "PS_PER_US",
    "ROW_TOLERANCES",
    "clock_edge_ps",
    "count_text",
    "flit_ps",
    "format_bytes",
    "format_ps",
    "format_rate",
    "num_flits",
    "parse_bytes",
    "parse_ps",
    "parse_rate",
    "share_text",
    "transfer_ps",
    "wire_ps",
)

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_S = 1_000_000_000_000
MAX_PS = 2**63 - 1

DTYPE_BITS: Mapping[str, int] = MappingProxyType(
    {
        "bf16": 16,
        "bool": 8,
        "f16": 16,
        "f32": 32,
        "f64": 64,
        "f8e4m3": 8,
        "f8e5m2": 8,
        "i16": 16,
        "i32": 32,
        "i4": 4,
        "i64": 64,
        "i8": 8,
        "u16": 16,
        "u32": 32,
        "u64": 64,
        "u8": 8,
    }
)
"""Bits of an element in memory, by dtype."""

ROW_TOLERANCES: Mapping[str, float] = MappingProxyType({"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5})
"""Largest error of values that were rounded to a dtype once, relative to the norm of their row."""

_PS_PER_UNIT = {"ps": 1, "ns": PS_PER_NS, "us": PS_PER_US, "ms": 10**9, "s": PS_PER_S}
_DECIMAL_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BYTES_PER_UNIT = _DECIMAL_BYTES | _BINARY_BYTES
_BYTES_PER_S_PER_UNIT = {f"{unit}/s": size for unit, size in _BYTES_PER_UNIT.items()}
_US_PER_S = 10**6
_UM_PER_MM = 1_000
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)\s*", re.ASCII)


def flit_ps(*, flit_bytes: int, bytes_per_us: int) -> int:
    """Time of one flit on the wire, rounded up: a transfer never finishes early.

    A 64 B flit at 256 GB/s, and on PCIe 5.0 x16 (32 GT/s, 128b/130b: 63 015 B/us):

    >>> flit_ps(flit_bytes=64, bytes_per_us=256_000)
    250
    >>> flit_ps(flit_bytes=64, bytes_per_us=63_015)
    1016
    """
    _check_int("flit_bytes", flit_bytes, minimum=1)
    _check_int("bytes_per_us", bytes_per_us, minimum=1)
    return _ceil_div(flit_bytes * PS_PER_US, bytes_per_us)


def transfer_ps(num_flits: int, *, flit_ps: int) -> int:
    """Time of a whole transfer on the wire.

    >>> transfer_ps(16, flit_ps=250)
    4000
    """
    _check_int("num_flits", num_flits, minimum=0)
    _check_int("flit_ps", flit_ps, minimum=1)
    return num_flits * flit_ps


def num_flits(num_bytes: int, *, flit_bytes: int) -> int:
    """Flits that carry so many bytes; the last one may be part empty.

    >>> num_flits(65, flit_bytes=64)
    2
    """
    _check_int("num_bytes", num_bytes, minimum=0)
    _check_int("flit_bytes", flit_bytes, minimum=1)
    return _ceil_div(num_bytes, flit_bytes)


def clock_edge_ps(index: int, *, hz: int) -> int:
    """When edge ``index`` of a clock is due, rounded up from the exact time: errors do not add up.

    >>> [clock_edge_ps(index, hz=3_000_000_000) for index in range(4)]
    [0, 334, 667, 1000]
    """
    _check_int("index", index, minimum=0)
    _check_int("hz", hz, minimum=1)
    return _ceil_div(index * PS_PER_S, hz)


def wire_ps(length_um: int, *, ps_per_mm: int) -> int:
    """Delay of a wire, rounded up; a wire of no length has none.

    >>> wire_ps(2_800, ps_per_mm=10), wire_ps(1, ps_per_mm=10), wire_ps(0, ps_per_mm=10)
    (28, 1, 0)
    """
    _check_int("length_um", length_um, minimum=0)
    _check_int("ps_per_mm", ps_per_mm, minimum=0)
    return _ceil_div(length_um * ps_per_mm, _UM_PER_MM)


def parse_ps(text: str, *, where: str = "time") -> int:
    """Picoseconds, exactly or not at all.

    >>> parse_ps("12.5 ns")
    12500
    """
    value = _parse_quantity(where, text, _PS_PER_UNIT, example="12.5 ns")
    picoseconds = _exact_int(where, text, value, "a whole number of ps")
    if picoseconds > MAX_PS:
        raise UnitError(where, repr(text), f"at most {MAX_PS} ps (106 days)", "use a shorter time")
    return picoseconds


def parse_bytes(text: str, *, where: str = "size") -> int:
    """Bytes, exactly or not at all; ``KiB`` is 1024 bytes and ``KB`` is 1000.

    >>> parse_bytes("64 KiB")
    65536
    """
    value = _parse_quantity(where, text, _BYTES_PER_UNIT, example="64 KiB")
    return _exact_int(where, text, value, "a whole number of bytes")


def parse_rate(text: str, *, where: str = "rate") -> int:
    """Bytes per microsecond, exactly or not at all; a rate of zero is refused.

    >>> parse_rate("128 GB/s")
    128000
    """
    per_s = _parse_quantity(where, text, _BYTES_PER_S_PER_UNIT, example="128 GB/s")
    rate = _exact_int(where, text, per_s / _US_PER_S, "a whole number of bytes per us")
    if rate == 0:
        raise UnitError(where, repr(text), "a rate above zero", "leave the link out instead")
    return rate


def format_ps(time_ps: int) -> str:
    """For people: the largest unit that fits, at most three decimals.

    >>> format_ps(12_500), format_ps(999), format_ps(1_234_567)
    ('12.5 ns', '999 ps', '1.235 us')
    """
    _check_int("time_ps", time_ps, minimum=0)
    return _format_quantity(Fraction(time_ps), _PS_PER_UNIT)


def format_bytes(num_bytes: int) -> str:
    """For people: binary units, at most three decimals.

    >>> format_bytes(65_536), format_bytes(1_572_864)
    ('64 KiB', '1.5 MiB')
    """
    _check_int("num_bytes", num_bytes, minimum=0)
    return _format_quantity(Fraction(num_bytes), _BINARY_BYTES)


def format_rate(num_bytes: int, *, elapsed_ps: int) -> str:
    """For people: the effective rate of bytes moved in a time, in decimal units.

    >>> format_rate(64, elapsed_ps=1016)
    '62.992 GB/s'
    """
    _check_int("num_bytes", num_bytes, minimum=0)
    _check_int("elapsed_ps", elapsed_ps, minimum=1)
    bytes_per_s = Fraction(num_bytes * PS_PER_S, elapsed_ps)
    return _format_quantity(bytes_per_s, _DECIMAL_BYTES) + "/s"


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _check_int(where: str, value: object, *, minimum: int) -> None:
    # type() and not isinstance(): True is an int to Python, but no quantity
    if type(value) is not int:
        found = f"{value!r} of type {type(value).__name__}"
        raise UnitError(where, found, "an integer", "convert it exactly before the call")
    if value < minimum:
        raise UnitError(where, str(value), f"at least {minimum}", "correct the value")


def _parse_quantity(
    where: str, text: object, units: Mapping[str, int], *, example: str
) -> Fraction:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        fix = f"write it like {example!r}"
        raise UnitError(where, repr(text), "a number of at least zero and a unit", fix)
    number, unit = match.groups()
    if unit not in units:
        known = "one of " + ", ".join(units)
        raise UnitError(where, f"unit {unit!r} in {text!r}", known, f"write it like {example!r}")
    return Fraction(number) * units[unit]


def _exact_int(where: str, text: str, value: Fraction, expected: str) -> int:
    if value.denominator != 1:
        raise UnitError(where, repr(text), expected, "use a value that needs no rounding")
    return value.numerator


def _format_quantity(value: Fraction, units: Mapping[str, int]) -> str:
    smallest = next(iter(units))
    fitting = [unit for unit in units if _thousandths(value, units[unit]) >= 1000]
    unit = fitting[-1] if fitting else smallest
    whole, decimals = divmod(_thousandths(value, units[unit]), 1000)
    return f"{whole}.{decimals:03}".rstrip("0").rstrip(".") + f" {unit}"


def _thousandths(value: Fraction, unit: int) -> int:
    return round(value * 1000 / unit)


def count_text(count: int, one: str) -> str:
    """Return a count with its noun.

    >>> count_text(1, "PE"), count_text(1024, "PE")
    ('1 PE', '1,024 PEs')
    """
    return f"{count:,} {one}" + "s" * (count != 1)


def share_text(share: float) -> str:
    """Return a fraction in percent.

    >>> share_text(0.915), share_text(0.0004), share_text(0.0)
    ('92 %', 'under 1 %', '0 %')
    """
    if 0 < share < 0.01:
        return "under 1 %"
    return f"{100 * share:.0f} %"
