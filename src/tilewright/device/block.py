"""Laws of blocks: their interfaces, a user's class that has one, checks of what they are asked.

A user's class is constructed as ``Class(name=..., spec=..., **parameters)``; `machine.impl` has
checked it when the machine was loaded.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

from tilewright.engine import Service
from tilewright.errors import RegistryError, ServerError, UnitError, meant
from tilewright.machine.impl import family_of, resolve_impl
from tilewright.machine.spec import BlockSpec
from tilewright.units import DTYPE_BITS

PacketBlock = Service
"""``service(packet, now_ps) -> (hold_ps, latency_ps)``: a link or a memory."""


class GemmBlock(Protocol):
    """All that a GEMM unit has to say."""

    def cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        """Cycles that the unit is held for an m x n x k product; at least one."""
        ...


@runtime_checkable
class LoopGemmBlock(GemmBlock, Protocol):
    """One that saves something when consecutive k tiles go into one accumulator."""

    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Cycles of each k tile, in order; each at least one."""
        ...


@runtime_checkable
class PeakGemmBlock(GemmBlock, Protocol):
    """One that knows what no product can beat."""

    def peak_flop_per_cycle(self, dtype: str) -> Fraction:
        """Floating-point (or integer) operations a cycle; a multiply-add is two."""
        ...


class VectorBlock(Protocol):
    """All that a vector unit has to say."""

    def cycles(self, op: str, elements: int, dtype: str) -> int:
        """Cycles that the unit is held for ``op`` on so many elements; at least one."""
        ...


def checked_cycles(where: str, call: str, found: object) -> int:
    """What a block's law returned for ``call``, if it can be a number of cycles."""
    if type(found) is not int or found < 1:
        expected = "an int of at least 1 (no bool, no NumPy scalar)"
        raise ServerError(where, f"{found!r} returned for {call}", expected, "correct the block")
    return found


def build_service(name: str, spec: BlockSpec) -> PacketBlock | None:
    """The user's block for packets; None: the server follows the figures of its spec."""
    if spec.impl is None:
        return None
    block: PacketBlock = construct_block(name, spec, spec.impl)
    return block


def construct_block(name: str, spec: BlockSpec, impl: str) -> Any:
    """The user's block that ``impl`` of the spec names; it has the interface of the spec's family.

    ``Any``, since the class is known only now: the caller says which interface it is.
    """
    where = f"{name}.impl"
    user_class = resolve_impl(impl, family_of(spec), spec.parameters, where=where)
    try:
        return user_class(name=name, spec=spec, **spec.parameters)
    except Exception as error:
        found = f"{type(error).__name__} ({error}) raised by {impl}"
        expected = "a block that can be constructed"
        raise ServerError(where, found, expected, "correct its __init__ or parameters") from error


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
