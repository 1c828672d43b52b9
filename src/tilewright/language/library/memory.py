"""Loads and stores of blocks."""

from typing import Any

from tilewright.language import dma
from tilewright.language.current import current_program

__all__ = ("load", "store")


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Any:
    """Read the elements at ``pointer``; where ``mask`` is false, ``other`` (else 0) instead.

    The cache and eviction hints, and ``volatile``, say nothing here: there are no caches.
    """
    return dma.load(current_program(), pointer, mask, other)


def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write ``value`` to the elements at ``pointer`` where ``mask`` is true."""
    dma.store(current_program(), pointer, value, mask)
