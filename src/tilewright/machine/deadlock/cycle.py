"""Finds a cycle in a graph of numbered channels, if there is one; fast on large graphs."""

import numpy as np
from numpy.typing import NDArray

EdgeArray = NDArray[np.int64]
"""One row for each edge: who waits, and for whom."""


def find_cycle(edges: EdgeArray, num_channels: int) -> list[int]:
    """A cycle of channels, or nothing. Channels that wait for nobody are taken away in rounds."""
    waits = np.bincount(edges[:, 0], minlength=num_channels)
    order = np.argsort(edges[:, 1], kind="stable")
    waiting, awaited = edges[order, 0], edges[order, 1]
    first = np.searchsorted(awaited, np.arange(num_channels + 1))
    done = np.flatnonzero(waits == 0)
    while done.size:
        counts = first[done + 1] - first[done]
        offsets = np.repeat(first[done] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        freed = waiting[offsets + np.arange(int(counts.sum()))]
        np.subtract.at(waits, freed, 1)
        candidates = np.unique(freed)
        done = candidates[waits[candidates] == 0]
    if not waits.any():
        return []
    return _walk_cycle(edges[(waits[edges[:, 0]] > 0) & (waits[edges[:, 1]] > 0)])


def _walk_cycle(edges: EdgeArray) -> list[int]:
    """Every channel left waits for another one that is left: walk until one comes again."""
    following = {int(one): int(other) for one, other in edges[::-1]}
    at = min(following)
    path: list[int] = []
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = following[at]
    return path[seen[at] :]
