"""What holds the TCM when a tile does not fit, as text for an error."""

from collections.abc import Iterable

from tilewright.language.block_type import BlockType
from tilewright.language.source import SourceLine, line_text

MAX_NAMED = 8


def held_text(
    tiles: Iterable[tuple[BlockType, SourceLine]], used_bytes: int, register_bytes: int
) -> str:
    """Return the tiles that the TCM holds, the largest first, and the bytes of spilled results.

    ``used_bytes`` are all bytes of the TCM that are not free; what no tile has is spilled.
    """
    largest_first = sorted(tiles, key=lambda tile: -tile[0].num_bytes)
    texts = [f"{tile} ({tile.num_bytes} bytes, {line_text(line)})" for tile, line in largest_first]
    held = texts[:MAX_NAMED]
    if len(texts) > MAX_NAMED:
        held.append(f"{len(texts) - MAX_NAMED} more")
    spilled_bytes = used_bytes - sum(tile.num_bytes for tile, _ in largest_first)
    if spilled_bytes > 0:
        registers = f"the registers ({register_bytes} bytes)"
        held.append(f"{spilled_bytes} bytes of results that {registers} have no room for")
    return "; ".join(held) or "nothing"
