"""Pages of the key-value cache: pool, page tables, prefix sharing, private state of requests."""

from tilewright.attention.paging.pager import Admission, ExtendPlan, PageCopy, Pager
from tilewright.attention.paging.state import StateField, StateStore
from tilewright.attention.paging.table import PageTable, PagingSpec

__all__ = (
    "Admission",
    "ExtendPlan",
    "PageCopy",
    "PageTable",
    "Pager",
    "PagingSpec",
    "StateField",
    "StateStore",
)
