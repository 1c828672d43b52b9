"""The new token of a step goes into its page."""

from typing import Any


def append_tokens(
    tl: Any,
    new: tuple[Any, ...],
    pools: tuple[Any, ...],
    new_rows: tuple[int, ...],
    widths: tuple[int, ...],
    places: Any,
    num_kv_heads: int,
    num_blocks: int,
    page_size: int,
) -> None:
    """A program for each row. ``places``: block and place in the page, of each request's token."""
    row = tl.program_id(0)
    request, head = row // num_kv_heads, row % num_kv_heads
    block, place = tl.load(places + request * 2), tl.load(places + request * 2 + 1)
    for source, pool, new_row, width in zip(new, pools, new_rows, widths, strict=True):
        channel = tl.arange(0, width)
        token = tl.load(source + row * new_row + channel)
        first = ((head * num_blocks + block) * page_size + place) * width
        tl.store(pool + first + channel, token)
