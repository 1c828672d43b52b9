"""Physical pages by their holders, one of which is the index of shared prefixes."""

import heapq
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.errors import InternalError, PagingError


class PagePool:
    """Counts the holders of every page. A page without a holder is free.

    ``order`` is the order in which pages are first handed out; results never depend on it.
    """

    def __init__(self, num_pages: int, order: Sequence[int] | None = None) -> None:
        free = list(range(num_pages)) if order is None else list(order)
        if sorted(free) != list(range(num_pages)):
            found, expected = f"{len(free)} entries", f"each of 0..{num_pages - 1} once"
            raise PagingError("pool.order", found, expected, "fix it")
        self._free = deque(free)
        self._holders = [0] * num_pages

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

    def drop(self, page: int) -> None:
        """Give one hold back; without holders the page is free."""
        if self._holders[page] < 1:
            raise InternalError("pool", f"free page {page} dropped", "a held page", "report it")
        self._holders[page] -= 1
        if self._holders[page] == 0:
            self._free.append(page)

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


@dataclass(eq=False, slots=True)
class PrefixNode:
    """One complete page, reached from its parent by the tokens in it."""

    page: int
    key: bytes
    parent: "PrefixNode | None"
    children: dict[bytes, "PrefixNode"] = field(default_factory=dict)
    last_use: int = 0


class PrefixIndex:
    """A tree over complete pages: equal paths mean equal tokens from the start of the sequence.

    Keys and values of a page depend on all tokens before it, so a page is found by its whole
    path, never by its own tokens alone. The pager counts the index as a holder of each page.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._root = PrefixNode(page=-1, key=b"", parent=None)
        self._clock = 0

    def match(self, tokens: "array[int]") -> tuple[PrefixNode, ...]:
        """Nodes of the longest known prefix in whole pages; marks them as used now."""
        self._clock += 1
        found: list[PrefixNode] = []
        node = self._root
        for start in range(0, len(tokens) - self._page_size + 1, self._page_size):
            child = node.children.get(self._key(tokens, start))
            if child is None:
                break
            child.last_use = self._clock
            found.append(child)
            node = child
        return tuple(found)

    def insert(self, tokens: "array[int]", pages: tuple[int, ...]) -> tuple[int, ...]:
        """Make complete pages findable; return those that the index holds from now on.

        Where the path is known already, its page stays and the caller's twin remains private.
        """
        self._clock += 1
        held: list[int] = []
        node = self._root
        for index, page in enumerate(pages):
            key = self._key(tokens, index * self._page_size)
            child = node.children.get(key)
            if child is None:
                child = PrefixNode(page=page, key=key, parent=node)
                node.children[key] = child
                held.append(page)
            child.last_use = self._clock
            node = child
        return tuple(held)

    def removable(self, is_free: Callable[[int], bool]) -> frozenset[int]:
        """Pages that nobody else holds, and after which only such pages come.

        A page may be free while a page after it is not: its reader has a twin of the first one.
        """
        held: set[int] = set()  # ids of nodes that must stay
        for node in reversed(self.nodes()):
            stays = not is_free(node.page) or any(id(c) in held for c in node.children.values())
            if stays:
                held.add(id(node))
        return frozenset(node.page for node in self.nodes() if id(node) not in held)

    def take_oldest(self, count: int, may_go: frozenset[int]) -> tuple[int, ...]:
        """Forget up to ``count`` pages among those that may go, and return them.

        Leaves go first, so that every page that stays can be reached; of them the one that was
        used longest ago, and of equal ages the lower page, so that eviction repeats exactly.
        """
        ready = [
            (node.last_use, node.page, node)
            for node in self.nodes()
            if not node.children and node.page in may_go
        ]
        heapq.heapify(ready)
        taken: list[int] = []
        while ready and len(taken) < count:
            _, page, node = heapq.heappop(ready)
            taken.append(page)
            parent = node.parent
            if parent is not None:
                del parent.children[node.key]
                if not parent.children and parent.page in may_go:
                    heapq.heappush(ready, (parent.last_use, parent.page, parent))
        return tuple(taken)

    def nodes(self) -> tuple[PrefixNode, ...]:
        """All nodes, parents before their children."""
        found: list[PrefixNode] = []
        waiting = list(self._root.children.values())
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(node.children.values())
        return tuple(found)

    def copy(self) -> "PrefixIndex":
        twin = PrefixIndex(self._page_size)
        twin._clock = self._clock
        twins = {id(self._root): twin._root}
        for node in self.nodes():
            parent = twins[id(node.parent)]
            made = PrefixNode(node.page, node.key, parent, last_use=node.last_use)
            parent.children[node.key] = made
            twins[id(node)] = made
        return twin

    def _key(self, tokens: "array[int]", start: int) -> bytes:
        return tokens[start : start + self._page_size].tobytes()
