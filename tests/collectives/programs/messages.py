"""From rank to rank."""

# ruff: noqa: ARG001  # all programs are called alike

from typing import Any

import numpy as np


def around_a_ring(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Everybody sends at once; a message each way may be longer than any buffer."""
    mine = torch.from_numpy(np.full(50_000, rank, np.float32))
    got = torch.from_numpy(np.zeros(50_000, np.float32))
    works = [dist.isend(mine, (rank + 1) % world), dist.irecv(got, (rank - 1) % world)]
    for work in works:
        work.wait()
    return got.numpy()


def one_after_the_other(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """A sum that goes up a chain of ranks."""
    total = torch.from_numpy(np.array([rank + 1.0, 1.0]))
    if rank > 0:
        before = torch.from_numpy(np.zeros(2))
        dist.recv(before, src=rank - 1)
        total = torch.from_numpy(total.numpy() + before.numpy())
    if rank < world - 1:
        dist.send(total, dst=rank + 1)
    return total.numpy()


def in_a_batch(torch: Any, dist: Any, rank: int, world: int) -> Any:
    peers = [peer for peer in range(world) if peer != rank]
    got = {peer: torch.from_numpy(np.zeros(3, np.int32)) for peer in peers}
    batch = [
        dist.P2POp(dist.isend, torch.from_numpy(np.full(3, 10 * rank + peer, np.int32)), peer)
        for peer in peers
    ] + [dist.P2POp(dist.irecv, tensor, peer) for peer, tensor in got.items()]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [tensor.numpy() for tensor in got.values()]


def in_their_order(torch: Any, dist: Any, rank: int, world: int) -> Any:
    if rank == 0:
        for number in range(4):
            dist.send(torch.from_numpy(np.array([number, number * number])), dst=1)
    if rank != 1:
        return None
    got = [torch.from_numpy(np.zeros(2, np.int64)) for _ in range(4)]
    for tensor in got:
        dist.recv(tensor, src=0)
    return [tensor.numpy() for tensor in got]


def by_their_tags(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Received in another order than they are sent in."""
    if rank == 0:
        works = [
            dist.isend(torch.from_numpy(np.array([tag, -tag])), dst=1, tag=tag) for tag in (5, 6, 7)
        ]
        for work in works:
            work.wait()
    if rank != 1:
        return None
    got = {tag: torch.from_numpy(np.zeros(2, np.int64)) for tag in (7, 5, 6)}
    for tag, tensor in got.items():
        dist.recv(tensor, src=0, tag=tag)
    return [tensor.numpy() for tensor in got.values()]


PROGRAMS = (around_a_ring, one_after_the_other, in_a_batch, in_their_order, by_their_tags)
