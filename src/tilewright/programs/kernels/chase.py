"""A walk along a chain of numbers in memory: each says where the next one is."""

from typing import Any

from tilewright import language as tl


def chase_kernel(chain_ptr: Any, out_ptr: Any, start: int, hops: int) -> None:
    """Where so many hops from ``start`` lead; no load can begin before the last one has ended."""
    place: Any = start
    for _ in range(hops):
        place = tl.load(chain_ptr + place)
    tl.store(out_ptr, place)
