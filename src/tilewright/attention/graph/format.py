"""How the leading axis of a value is addressed, and how long it is."""

from enum import IntEnum, StrEnum


class FORMAT(IntEnum):
    """What one entry of the leading axis stands for. Numbers and names are those users know."""

    BATCHED = 0  # one entry per row, that is per request and KV head
    RAGGED = 1  # one entry per page of the row; on the cache side the page at hand
    PAGED = 2  # a cache field: one entry per page, kept in the pool
    PARAMETER = 3  # a learned constant, with a table per layer or without
    SLOTTED = 4  # a request cache: the slot of the row, zero until the row saves to it


class Leading(StrEnum):
    """The leading axis as a symbol; its length is known at each step only."""

    ONE = "1"
    PAGES = "S"
    NONE = "-"


class Side(StrEnum):
    """Which of the two programs of a flow a node belongs to."""

    CACHE = "cache"  # runs when a page is complete
    INDEXER = "indexer"  # runs at every decode step


class Span(StrEnum):
    """Which pages of a row an op over the page axis sees."""

    MIDDLE = "middle"  # without the reserved first and last pages
    ALL = "all"  # every page of the row, also the unfinished last one
