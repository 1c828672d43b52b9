"""Sizes that commands carry: integers of at least one."""

from collections.abc import Sequence

from tilewright.errors import UnitError


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
