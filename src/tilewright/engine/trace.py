"""Records of what happened, and the digest by which runs are compared."""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

import numpy as np


class TraceRecord(NamedTuple):
    """A server took a packet: when it was ready, when it started, when its tail left."""

    server: int
    packet_id: int
    ready_ps: int
    start_ps: int
    tail_ps: int


class MemoryRecord(NamedTuple):
    """A memory knows when an access is done."""

    server: int
    packet_id: int
    decided_ps: int
    done_ps: int
    refresh_ps: int  # of the time that it took, what refresh held it up


def digest_of(completions: Iterable[tuple[int, int]], trace: Iterable[TraceRecord] = ()) -> str:
    """SHA-256 over the sorted (id, completion time) pairs and over the trace in its order.

    >>> digest_of([(1, 250), (0, 500)]) == digest_of([(0, 500), (1, 250)])
    True
    """
    digest = sha256()
    for rows in (sorted(completions), list(trace)):
        digest.update(np.array([len(rows)], "<i8").tobytes())
        digest.update(np.array(rows, "<i8").tobytes())
    return digest.hexdigest()
