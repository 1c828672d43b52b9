"""Checks of what commands carry: names from a table, sizes of at least one."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tilewright.errors import RegistryError, UnitError, meant
from tilewright.units import DTYPE_BITS


def check_size(where: str, name: str, value: object) -> None:
    """Refuse what is no int (a bool or a NumPy scalar is none) or below one.

    >>> check_size("sip0.cube0.pe0.gemm", "m", 0)
    Traceback (most recent call last):
    tilewright.errors.UnitError: sip0.cube0.pe0.gemm: found m = 0, expected an int of at least 1; \
leave empty work out
    """
    if type(value) is int and value >= 1:
        return
    fix = "leave empty work out" if type(value) is int else "pass int(value)"
    raise UnitError(where, f"{name} = {value!r}", "an int of at least 1", fix)


def check_product(where: str, m: int, n: int, k_tiles: Sequence[int]) -> None:
    """Refuse an M x N x K product that has no work, or a part of K that has none."""
    check_size(where, "m", m)
    check_size(where, "n", n)
    check_size(where, "number of k tiles", len(k_tiles))
    for k in k_tiles:
        check_size(where, "k", k)


def ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


Entry = TypeVar("Entry")


def look_up(where: str, noun: str, name: object, table: Mapping[str, Entry]) -> Entry:
    """The entry of ``name``; ``noun`` says what the names of the table are.

    >>> look_up("sip0.cube0.pe0.vector", "op", "ad", {"add": 1, "mul": 4})
    Traceback (most recent call last):
    tilewright.errors.RegistryError: sip0.cube0.pe0.vector: found op 'ad', expected one of add, \
mul; did you mean 'add'?
    """
    if isinstance(name, str) and name in table:
        return table[name]
    fix = meant(name if isinstance(name, str) else "", table, f"use a known {noun}", most=3)
    raise RegistryError(where, f"{noun} {name!r}", "one of " + ", ".join(sorted(table)), fix)


def num_bytes_of(where: str, elements: int, dtype: str) -> int:
    """Bytes of packed elements; the last one may be part empty.

    >>> num_bytes_of("a block", 3, "i4")
    2
    """
    return ceil_div(elements * look_up(where, "dtype", dtype, DTYPE_BITS), 8)
