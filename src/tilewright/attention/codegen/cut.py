"""Which stages of a step share a kernel."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ("Cut", "Decision", "Fusion")


class Fusion(StrEnum):
    """Neighbouring stages in one kernel."""

    SCORE_SELECT = "scoring and selection"
    SELECT_LIST = "selection and listing"
    LIST_ATTEND = "listing and attention"


@dataclass(frozen=True, slots=True)
class Decision:
    """Of one fusion: whether it is made, why, and what a row's memory and time are spared."""

    fusion: Fusion
    is_accepted: bool
    reason: str
    saved_bytes: int = 0
    saved_ps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a file of kernels is made of; the switches are there to see what each is worth."""

    fusions: frozenset[Fusion] = frozenset()
    has_dots: bool = True  # products with queries go to the matrix unit
    hoists: bool = True  # work on the query alone is ahead of the loop over pages
    reads_ahead: bool = True  # block numbers are loaded before the tile that needs them
