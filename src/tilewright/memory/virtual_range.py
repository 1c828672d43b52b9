"""Ranges of virtual bytes, and where they are in physical memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.memory.address import PhysicalByte, VirtualByte


@dataclass(frozen=True, slots=True, order=True)
class VirtualRange:
    """Neighbouring virtual bytes, and as many again ``times`` times at equal distances."""

    first: VirtualByte
    num_bytes: int  # of one range
    times: int = 1
    step: int = 0  # from one range to the next

    @property
    def end(self) -> int:
        """The byte behind the last of all."""
        return self.first + (self.times - 1) * self.step + self.num_bytes

    def single(self) -> "Iterator[VirtualRange]":
        """Yield each range by itself, in order."""
        for place in range(self.times):
            yield VirtualRange(VirtualByte(self.first + place * self.step), self.num_bytes)

    def __str__(self) -> str:
        last = self.first + self.num_bytes - 1
        text = f"virtual bytes {self.first:#x}..{last:#x}"
        return text if self.times == 1 else f"{text}, {self.times} times {self.step:#x} apart"


@dataclass(frozen=True, slots=True, order=True)
class RangeMapping:
    """Virtual bytes, and the first of as many physical bytes in the same order."""

    virtual: VirtualRange
    physical: PhysicalByte
    physical_step: int = 0  # from one range to the next, if they are several

    def single(self) -> "Iterator[RangeMapping]":
        """Yield each range by itself, in order."""
        for place, virtual in enumerate(self.virtual.single()):
            yield RangeMapping(virtual, PhysicalByte(self.physical + place * self.physical_step))
