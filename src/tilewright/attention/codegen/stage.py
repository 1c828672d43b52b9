"""The stages of a decode step."""

from enum import StrEnum

__all__ = ("Stage",)


class Stage(StrEnum):
    """What a kernel, or a function of one, does for a step."""

    COMPLETION = "page completion"
    SCORING = "scoring"
    SELECTION = "selection"
    ATTENTION = "attention"
    MERGE = "merge"
