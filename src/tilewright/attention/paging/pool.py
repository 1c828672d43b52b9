"""Physical pages with their holders: who takes a page, shares it, and gives it back."""

from collections import deque
from collections.abc import Sequence

from tilewright.errors import InternalError, PagingError


class PagePool:
    """Counts the holders of every page. A page without a holder is free.

    ``order`` is the order in which pages are first handed out; results never depend on it.
    """

    def __init__(self, num_pages: int, order: Sequence[int] | None = None) -> None:
        free = list(range(num_pages)) if order is None else list(order)
        if sorted(free) != list(range(num_pages)):
            raise PagingError(
                "pool.order", f"{len(free)} entries", f"each of 0..{num_pages - 1} once", "fix it"
            )
        self._free = deque(free)
        self._holders = [0] * num_pages

    @property
    def num_pages(self) -> int:
        return len(self._holders)

    @property
    def num_free(self) -> int:
        return len(self._free)

    def holders(self, page: int) -> int:
        return self._holders[page]

    def take_page(self) -> int:
        """Hand out a free page with one holder; the caller has made sure that there is one."""
        if not self._free:
            raise InternalError("pool", "no free page", "one after making room", "report it")
        page = self._free.popleft()
        self._holders[page] = 1
        return page

    def share(self, page: int) -> None:
        if self._holders[page] < 1:
            raise InternalError("pool", f"free page {page} shared", "a held page", "report it")
        self._holders[page] += 1

    def drop(self, page: int) -> bool:
        """Give one hold back; True if the page is free now."""
        if self._holders[page] < 1:
            raise InternalError("pool", f"free page {page} dropped", "a held page", "report it")
        self._holders[page] -= 1
        if self._holders[page] == 0:
            self._free.append(page)
            return True
        return False

    def copy(self) -> "PagePool":
        twin = PagePool(0)
        twin._free = deque(self._free)
        twin._holders = list(self._holders)
        return twin

    def check_integrity(self, expected_holders: Sequence[int]) -> None:
        """Compare every count with what tables and prefix index really hold."""
        if list(expected_holders) != self._holders:
            wrong = [
                f"page {page}: {held} counted, {expected} found"
                for page, (held, expected) in enumerate(
                    zip(self._holders, expected_holders, strict=True)
                )
                if held != expected
            ]
            raise InternalError("pool", "; ".join(wrong), "equal counts", "report it")
        free = sorted(self._free)
        unheld = [page for page, held in enumerate(self._holders) if held == 0]
        if free != unheld:
            raise InternalError("pool", f"free {free}", f"exactly the unheld {unheld}", "report it")
