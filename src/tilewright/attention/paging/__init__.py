"""Pages of the key-value cache: pool, page tables, prefix sharing, private state of requests."""

from tilewright.attention.paging.pager import Pager, PagerSnapshot
from tilewright.attention.paging.plan import Admission, ExtendPlan, PageCopy
from tilewright.attention.paging.spec import PagingSpec
from tilewright.attention.paging.state import StateField, StateStore
from tilewright.attention.paging.table import PageTable

__all__ = (
    "Admission",
    "ExtendPlan",
    "PageCopy",
    "PageTable",
    "Pager",
    "PagerSnapshot",
    "PagingSpec",
    "StateField",
    "StateStore",
)
