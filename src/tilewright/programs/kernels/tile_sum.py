"""All-reduce of one tile a PE over installed rings: around a ring, on a mesh, in a tree."""

from typing import Any

from tilewright import language as tl


def ring_sum_kernel(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Send the tile that came last on to the east and add the one from the west, ranks - 1 times.

    The ranks are the columns of one row.
    """
    del rank, rows
    total = tile = tl.load(ptr, shape=(elements,))
    for _ in range(columns - 1):
        tl.send("E", tile)
        tile = tl.recv("W", (elements,), tile.dtype)
        total = total + tile
    tl.store(ptr, total)


def ring_sum_kernel_in_turns(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Do as ring_sum_kernel, with one command under way a PE: rank 0 receives before it sends.

    Otherwise all ranks wait for room in a ring, if a tile is longer than that.
    """
    del rows
    total = tile = tl.load(ptr, shape=(elements,))
    for _ in range(columns - 1):
        if rank > 0:
            tl.send("E", tile)
        before = tl.recv("W", (elements,), tile.dtype)
        if rank == 0:
            tl.send("E", tile)
        tile = before
        total = total + tile
    tl.store(ptr, total)


def mesh_sum_kernel(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Add up the rows of a mesh, then its columns."""
    tile = tl.load(ptr, shape=(elements,))
    row = _line_sum(tile, rank % columns, columns, ("W", "E"))
    tl.store(ptr, _line_sum(row, rank // columns, rows, ("N", "S")))


def mesh_sum_kernel_in_turns(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Do as mesh_sum_kernel, with one command under way a PE: sums pass one way, then the other."""
    tile = tl.load(ptr, shape=(elements,))
    row = _line_sum_in_turns(tile, rank % columns, columns, ("W", "E"))
    tl.store(ptr, _line_sum_in_turns(row, rank // columns, rows, ("N", "S")))


def tree_sum_kernel(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Send sums up to rank 0 and the result down; the ranks are the columns of one row."""
    del rows
    sides = (("child_left", 2 * rank + 1), ("child_right", 2 * rank + 2))
    below = [direction for direction, child in sides if child < columns]
    total = tl.load(ptr, shape=(elements,))
    for direction in below:
        total = total + tl.recv(direction, (elements,), total.dtype)
    if rank > 0:
        tl.send("parent", total)
        total = tl.recv("parent", (elements,), total.dtype)
    for direction in below:
        tl.send(direction, total)
    tl.store(ptr, total)


def _line_sum(tile: Any, place: int, length: int, ways: tuple[str, str]) -> Any:
    """Return the sum of a line with open ends: partial sums pass from each end to the other."""
    neighbours = {0: place > 0, 1: place < length - 1}
    for back, ahead in ((0, 1), (1, 0)):
        if neighbours[ahead] and not neighbours[back]:
            tl.send(ways[ahead], tile)  # an end begins, so that both sums are under way at once
    total = tile
    for back, ahead in ((0, 1), (1, 0)):
        if neighbours[back]:
            before = tl.recv(ways[back], tile.shape, tile.dtype)
            if neighbours[ahead]:
                tl.send(ways[ahead], before + tile)
            total = total + before
    return total


def _line_sum_in_turns(tile: Any, place: int, length: int, ways: tuple[str, str]) -> Any:
    """Return the sum of a line: partial sums reach its last place before any of them return."""
    total = tile
    for back, ahead, is_first, is_last in (
        (*ways, place == 0, place == length - 1),
        (*ways[::-1], place == length - 1, place == 0),
    ):
        passed = tile
        if not is_first:
            before = tl.recv(back, tile.shape, tile.dtype)
            total, passed = total + before, before + tile
        if not is_last:
            tl.send(ahead, passed)
    return total
