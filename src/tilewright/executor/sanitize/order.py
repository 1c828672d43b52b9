"""Program order of accesses to the same bytes, however long ago the first of them was.

`language.order` forgets accesses that cannot be under way any more; here they still say what an
access comes after.
"""

from collections.abc import Sequence

from tilewright.executor.access.order import PAGE_SHIFT, Span
from tilewright.memory.sanitizer.access import NOWHERE, Places

Table = dict[int, dict[Span, Places]]
"""By page and span: the accesses that are complete when those to this span are."""


class SpanOrder:
    """Of one program. Accesses of one span are kept together, so that loops do not add up."""

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._reads: Table = {}
        self._writes: Table = {}

    def before(self, spans: Sequence[Span], *, writes: bool) -> Places:
        """What an access to these spans comes after: writes, and if it writes itself reads too."""
        found = _overlapping(self._writes, spans) if self._writes else NOWHERE
        return found | _overlapping(self._reads, spans) if writes else found

    def note(self, spans: Sequence[Span], places: Places, *, writes: bool) -> None:
        """An access to these spans: its own place and all before it."""
        table = self._writes if writes else self._reads
        for span in spans:
            for page in _pages(span):
                known = table.setdefault(page, {})
                known[span] = places if writes else known.get(span, NOWHERE) | places


def _overlapping(table: Table, spans: Sequence[Span]) -> Places:
    found = NOWHERE
    for span in spans:
        for page in _pages(span):
            for other, before in table.get(page, {}).items():
                if other.overlaps(span):
                    found |= before
    return found


def _pages(span: Span) -> range:
    return range(span.address >> PAGE_SHIFT, (span.end - 1 >> PAGE_SHIFT) + 1)
