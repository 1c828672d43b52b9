"""Program order of accesses to the same bytes, however long ago the first of them was.

`language.order` forgets accesses that cannot be under way any more; here they still say what an
access comes after.
"""

from collections.abc import Sequence

from tilewright.language.order import PAGE_SHIFT, Span

__all__ = ("SpanOrder",)

Masks = dict[int, dict[Span, int]]
"""By page and span: the accesses that are complete when those to this span are."""


class SpanOrder:
    """Of one program. Accesses of one span are kept together, so that loops do not add up."""

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._reads: Masks = {}
        self._writes: Masks = {}

    def before(self, spans: Sequence[Span], *, writes: bool) -> int:
        """What an access to these spans comes after: writes, and if it writes itself reads too."""
        mask = _overlapping(self._writes, spans) if self._writes else 0
        return mask | _overlapping(self._reads, spans) if writes else mask

    def note(self, spans: Sequence[Span], mask: int, *, writes: bool) -> None:
        """An access to these spans; its mask has its own bit and all before it."""
        table = self._writes if writes else self._reads
        for span in spans:
            for page in _pages(span):
                known = table.setdefault(page, {})
                known[span] = mask if writes else known.get(span, 0) | mask


def _overlapping(table: Masks, spans: Sequence[Span]) -> int:
    mask = 0
    for span in spans:
        for page in _pages(span):
            for other, before in table.get(page, {}).items():
                if other.overlaps(span):
                    mask |= before
    return mask


def _pages(span: Span) -> range:
    return range(span.address >> PAGE_SHIFT, (span.end - 1 >> PAGE_SHIFT) + 1)
