"""How busy links are over time, in buckets of simulated time, told as soon as they are over."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tilewright.analysis.trace.activity import Column


class BusyValue(NamedTuple):
    """From this time on, until the server's next value."""

    server: int
    at_ps: int
    share: float


class BusyBuckets:
    """Adds up holds of servers by bucket.

    >>> buckets = BusyBuckets(bucket_ps=100)
    >>> one = np.array([7])
    >>> buckets.add(one, one * 0 + 150, one * 0 + 250)  # server 7 is held from 150 to 250 ps
    >>> [tuple(value) for value in buckets.take(before_ps=400)]
    [(7, 100, 0.5), (7, 200, 0.5), (7, 300, 0.0)]
    """

    def __init__(self, *, bucket_ps: int) -> None:
        self._bucket_ps = bucket_ps
        self._busy_ps: dict[int, dict[int, int]] = {}  # by bucket and server
        self._told: dict[int, int] = {}  # by server: the bucket after the last one that was told

    def add(self, servers: Column, starts_ps: Column, ends_ps: Column) -> None:
        """Holds that begin in no bucket that was taken already."""
        size = self._bucket_ps
        while len(servers):
            buckets = starts_ps // size
            stops_ps = np.minimum(ends_ps, (buckets + 1) * size)
            self._add_up(buckets, servers, stops_ps - starts_ps)
            is_longer = stops_ps < ends_ps
            servers, starts_ps, ends_ps = (
                column[is_longer] for column in (servers, stops_ps, ends_ps)
            )

    def _add_up(self, buckets: Column, servers: Column, busy_ps: Column) -> None:
        # one integer a pair: while it compares rows, NumPy makes a TypeError of a Ctrl-C
        used, places = np.unique(buckets, return_inverse=True)
        num_servers = int(servers.max()) + 1
        pairs, indices = np.unique(places * num_servers + servers, return_inverse=True)
        sums = np.zeros(len(pairs), np.int64)
        np.add.at(sums, indices, busy_ps)
        found = zip(used[pairs // num_servers], pairs % num_servers, sums, strict=True)
        for bucket, server, time_ps in (map(int, each) for each in found):
            held = self._busy_ps.setdefault(bucket, {})
            held[server] = held.get(server, 0) + time_ps

    def take(self, before_ps: int | None = None) -> Iterator[BusyValue]:
        """The values of buckets that are over by then, or of all; in order of time."""
        size = self._bucket_ps
        for bucket in sorted(self._busy_ps):
            if before_ps is not None and (bucket + 1) * size > before_ps:
                break
            yield from self._ended(bucket)
            for server, busy_ps in sorted(self._busy_ps.pop(bucket).items()):
                yield BusyValue(server, bucket * size, busy_ps / size)
                self._told[server] = bucket + 1
        yield from self._ended(None if before_ps is None else before_ps // size)

    def _ended(self, bucket: int | None) -> Iterator[BusyValue]:
        """Servers that were busy and are no more, before a bucket; None: before none at all."""
        for server, after in sorted(self._told.items()):
            if bucket is None or after < bucket:
                yield BusyValue(server, after * self._bucket_ps, 0.0)
                del self._told[server]
