"""All seeded mistakes, by what they are."""

from types import MappingProxyType

from tests.sanitizer import bounds, freed, queue, race, stale, uninitialised
from tilewright.memory.sanitizer.finding import FindingKind

__all__ = ("MISTAKES",)

MISTAKES = MappingProxyType(
    {
        FindingKind.UNINITIALISED: uninitialised.MISTAKES,
        FindingKind.OUT_OF_BOUNDS: bounds.MISTAKES,
        FindingKind.USE_AFTER_FREE: freed.MISTAKES,
        FindingKind.STALE_PAGE: stale.MISTAKES,
        FindingKind.RACE: race.MISTAKES,
        FindingKind.QUEUE_RACE: queue.MISTAKES,
    }
)
