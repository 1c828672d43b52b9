"""Windows of half a page, a quarter of a page apart: what InfLLM-v2 and NSA score.

Window w of a page is its quarter w and the next one; the last window reaches into the next page.
"""

from tilewright.attention.abs import ContextBase, Value
from tilewright.attention.indexer import Concat, ShiftPages, TokenCount

__all__ = ("WINDOWS", "finished_windows", "next_quarter")

WINDOWS = 4
"""Windows that begin in a page."""


def next_quarter(quarters: Value) -> Value:
    """[S, 4, c]: at each quarter the one behind it, of the next page after the last."""
    first_of_next = ShiftPages(1)(quarters[:, :1])
    behind: Value = Concat(dim=1)(quarters[:, 1:], first_of_next)
    return behind


def finished_windows(page_tokens: int, ctx: ContextBase) -> Value:
    """Bool [S, 4, 1]: whether all tokens of a window lie in pages that are complete."""
    tokens = TokenCount()(ctx=ctx)
    here, behind = tokens == page_tokens, ShiftPages(1)(tokens) == page_tokens
    whole: Value = Concat(dim=1)(here, here, here, behind)
    return whole
