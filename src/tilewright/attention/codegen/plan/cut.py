"""Which stages of a step share a kernel, and how pages are chosen."""

from dataclasses import dataclass
from enum import StrEnum


class Fusion(StrEnum):
    """Neighbouring stages in one kernel."""

    SCORE_SELECT = "scoring and selection"
    SELECT_LIST = "selection and listing"
    LIST_ATTEND = "listing and attention"


class Selection(StrEnum):
    """How the best pages of a row are found."""

    BLOCK = "selection of a row on the chip"  # all scores are one block, which is sorted
    SEGMENTS = "selection in two levels"  # of each segment the best, then the best of those
    DIGITS = "selection by digits"  # the last score that is in, digit by digit from memory


@dataclass(frozen=True, slots=True)
class Decision:
    """Of one fusion, or of one way to select: whether it is taken, and why.

    ``num_bytes`` are what a row moves between the stages that are decided about if it is taken,
    ``other_bytes`` if it is not; ``saved_ps`` is what taking it saves, launches included.
    """

    choice: Fusion | Selection
    is_accepted: bool
    reason: str
    num_bytes: int = 0
    other_bytes: int = 0
    saved_ps: int = 0

    @property
    def saved_bytes(self) -> int:
        return self.other_bytes - self.num_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a file of kernels is made of; the switches are there to see what each is worth."""

    fusions: frozenset[Fusion] = frozenset()
    selection: Selection | None = None  # None: what costs least
    has_dots: bool = True  # products with queries go to the matrix unit
    hoists: bool = True  # work on the query alone is ahead of the loop over pages
    reads_ahead: bool = True  # block numbers are loaded before the tile that needs them
