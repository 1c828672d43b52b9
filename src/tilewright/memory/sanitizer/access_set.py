"""Sets of accesses by their places in a strand."""

from collections.abc import Iterator
from typing import NamedTuple


class Places(NamedTuple):
    """Small where its members are near each other, however long the strand is.

    >>> loads = Places.one(7000) | Places.one(7002)
    >>> loads.bits, list(loads.places())
    (5, [7000, 7002])
    """

    first: int
    bits: int  # from the first on

    @classmethod
    def one(cls, place: int) -> "Places":
        return cls(place, 1)

    @classmethod
    def up_to(cls, count: int) -> "Places":
        """The first so many of a strand."""
        return cls(0, (1 << count) - 1)

    @property
    def mask(self) -> int:
        """A bit for each place of the strand."""
        return self.bits << self.first

    def __or__(self, other: "Places") -> "Places":
        if not other.bits:
            return self
        if not self.bits:
            return other
        if self.first <= other.first:
            return Places(self.first, self.bits | other.bits << other.first - self.first)
        return Places(other.first, other.bits | self.bits << self.first - other.first)

    def places(self) -> Iterator[int]:
        """Lowest first."""
        bits = self.bits
        while bits:
            lowest = bits & -bits
            yield self.first + lowest.bit_length() - 1
            bits ^= lowest


NOWHERE = Places(0, 0)
