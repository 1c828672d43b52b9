"""Requests over a pool of pages: admit, extend, fork, truncate, release, with prefix sharing."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tilewright.attention.paging.pool import PagePool, PrefixIndex
from tilewright.attention.paging.table import PageTable, PagingSpec
from tilewright.errors import InternalError, PagingError


@dataclass(frozen=True, slots=True)
class Admission:
    """A request has a table. Its first ``hit_tokens`` are in shared pages and need no prefill."""

    request: str
    hit_tokens: int


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Copy-on-write: the first tokens of a shared page move to a page of the request's own."""

    source: int
    target: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class ExtendPlan:
    """An append, in the order that storage must keep: clear fresh pages, copy, then write.

    ``blocks`` and ``offsets`` place each new token: physical block, position in the block.
    Blocks ``first_full .. stop_full`` (logical) are complete with this append and were not before.
    """

    request: str
    first_token: int
    fresh_pages: tuple[int, ...]
    copies: tuple[PageCopy, ...]
    blocks: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    first_full: int
    stop_full: int

    @property
    def num_tokens(self) -> int:
        return len(self.blocks)


class Pager:
    """Decides which page holds which token. It never touches the arrays that hold them.

    A page with more than one holder is read-only: an append into it copies it first. Sharing has
    no switch; what belongs to one request alone (state of flows) is not kept in pages at all.
    """

    def __init__(self, spec: PagingSpec, *, order: Sequence[int] | None = None) -> None:
        self.spec = spec
        self._pool = PagePool(spec.num_pages, order)
        self._index = PrefixIndex(spec.page_size)
        self._tables: dict[str, PageTable] = {}

    @property
    def tables(self) -> Mapping[str, PageTable]:
        return MappingProxyType(self._tables)

    @property
    def num_free_pages(self) -> int:
        """Pages that nobody holds; the prefix index gives up more when they are needed."""
        return self._pool.num_free

    def table(self, request: str) -> PageTable:
        try:
            return self._tables[request]
        except KeyError:
            known = f"one of: {', '.join(sorted(self._tables)) or 'none'}"
            raise _request_error(request, "no table", known, "admit it first") from None

    def admit(self, request: str, tokens: Iterable[int]) -> Admission:
        """Open a table on the longest known prefix, always leaving one token to compute.

        The last token is never taken from the index: its query must run to give an output.
        """
        if request in self._tables:
            raise _request_error(request, "a second admit", "a new name", "release it")
        wanted = array("q", tokens)
        if not wanted:
            raise _request_error(request, "an empty sequence", "one token or more", "add a token")
        nodes = self._index.match(wanted[:-1])
        pages = tuple(node.page for node in nodes)
        for page in pages:
            self._pool.share(page)
        hit_tokens = len(pages) * self.spec.page_size
        table = PageTable(self.spec, wanted[:hit_tokens], array("q", pages), len(pages))
        self._tables[request] = table
        return Admission(request, hit_tokens)

    def extend(self, request: str, tokens: Iterable[int]) -> ExtendPlan:
        """Append tokens; takes pages, copies a shared last page. All of it or nothing."""
        table = self.table(request)
        added = array("q", tokens)
        first, stop = table.num_tokens, table.num_tokens + len(added)
        into_last = first % self.spec.page_size != 0 and len(added) > 0
        must_copy = into_last and self._pool.holders(table.pages[-1]) > 1
        num_fresh = self.spec.pages_for(stop) - len(table.pages)
        self._make_room(request, num_fresh + must_copy)
        copies = (self._copy_last(table),) if must_copy else ()
        fresh = tuple(self._pool.take_page() for _ in range(num_fresh))
        first_full = table.num_full_blocks
        table.pages.extend(fresh)
        table.tokens.extend(added)
        positions = np.arange(first, stop, dtype=np.int64)
        blocks = table.block_ids()[positions // self.spec.block_size]
        offsets = positions % self.spec.block_size
        return ExtendPlan(
            request, first, fresh, copies, blocks, offsets, first_full, table.num_full_blocks
        )

    def publish(self, request: str) -> int:
        """Offer the complete pages to the prefix index; return how many it now holds more.

        Called when every layer has written them, so that a hit never sees half a page.
        """
        table = self.table(request)
        complete = table.num_tokens // self.spec.page_size
        if complete == table.num_published:
            return 0
        held = self._index.insert(table.tokens, tuple(table.pages[:complete]))
        for page in held:
            self._pool.share(page)
        table.num_published = complete
        return len(held)

    def fork(self, parent: str, child: str) -> PageTable:
        """A second table on the same pages; the first append of either copies a partial page."""
        if child in self._tables:
            raise _request_error(child, "a second table", "a new name", "release it")
        table = self.table(parent).copy()
        for page in table.pages:
            self._pool.share(page)
        self._tables[child] = table
        return table

    def truncate(self, request: str, num_tokens: int) -> None:
        """Forget the tokens from ``num_tokens`` on; pages that hold none of the rest go back."""
        table = self.table(request)
        if not 0 <= num_tokens <= table.num_tokens:
            found, expected = f"a cut at token {num_tokens}", f"0..{table.num_tokens}"
            raise _request_error(request, found, expected, "cut inside the sequence")
        keep = self.spec.pages_for(num_tokens)
        for page in reversed(table.pages[keep:]):
            self._pool.drop(page)
        del table.pages[keep:]
        del table.tokens[num_tokens:]
        table.num_published = min(table.num_published, num_tokens // self.spec.page_size)

    def release(self, request: str) -> None:
        """Close a table. Complete pages stay findable until their room is needed."""
        table = self.table(request)
        for page in reversed(table.pages):
            self._pool.drop(page)
        del self._tables[request]

    def snapshot(self) -> "Pager":
        """Return a copy, whose accounting stays as it is now."""
        twin = Pager(self.spec)
        twin.restore(self)
        return twin

    def restore(self, snapshot: "Pager") -> None:
        """Go back to a snapshot of a pager of the same sizes; it stays usable."""
        if snapshot.spec != self.spec:
            raise PagingError("pager", f"a snapshot of {snapshot.spec}", str(self.spec), "match it")
        self._pool = snapshot._pool.copy()
        self._index = snapshot._index.copy()
        self._tables = {name: table.copy() for name, table in snapshot._tables.items()}

    def check_integrity(self) -> None:
        """Raise InternalError unless holders, tables and index agree."""
        holders = [0] * self.spec.num_pages
        for node in self._index.nodes():
            holders[node.page] += 1
        for name, table in self._tables.items():
            if len(table.pages) != self.spec.pages_for(table.num_tokens):
                found = f"{len(table.pages)} pages for {table.num_tokens} tokens"
                raise InternalError(f"table {name!r}", found, "just enough", "report it")
            if len(set(table.pages)) != len(table.pages):
                raise InternalError(f"table {name!r}", "a page twice", "once", "report it")
            for page in table.pages:
                holders[page] += 1
        self._pool.check_integrity(holders)

    def _make_room(self, request: str, num_pages: int) -> None:
        """Evict from the prefix index until enough pages are free; change nothing on failure."""
        missing = num_pages - self._pool.num_free
        if missing <= 0:
            return
        may_go = self._index.removable(lambda page: self._pool.holders(page) == 1)
        if missing > len(may_go):
            found = f"{self._pool.num_free} free pages and {len(may_go)} that can be evicted"
            fix = "release a request, or build the session with more pages"
            raise _request_error(request, found, f"{num_pages}", fix)
        evicted = self._index.take_oldest(missing, may_go)
        if len(evicted) < missing:
            found = f"{len(evicted)} of {missing} pages evicted"
            raise InternalError("prefix index", found, "all of them", "report it")
        for page in evicted:
            self._pool.drop(page)

    def _copy_last(self, table: PageTable) -> PageCopy:
        source = table.pages[-1]
        target = self._pool.take_page()
        self._pool.drop(source)
        table.pages[-1] = target
        return PageCopy(source, target, table.num_tokens % self.spec.page_size)


def _request_error(request: str, found: str, expected: str, fix: str) -> PagingError:
    return PagingError(f"request {request!r}", found, expected, fix)
