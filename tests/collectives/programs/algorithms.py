"""Collectives that users write from others."""

from typing import Any

import numpy as np


def ring_all_reduce(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """By messages: reduce around the ring, then gather around it."""
    blocks = [np.full(3, 10.0 * rank + block) for block in range(world)]
    for step in range(2 * (world - 1)):
        combines = step < world - 1
        out = (rank - step + (0 if combines else world)) % world
        into = (out - 1) % world
        got = torch.from_numpy(np.zeros(3))
        works = [
            dist.isend(torch.from_numpy(blocks[out]), (rank + 1) % world),
            dist.irecv(got, (rank - 1) % world),
        ]
        for work in works:
            work.wait()
        blocks[into] = blocks[into] + got.numpy() if combines else got.numpy()
    return blocks


def prefix_sum(torch: Any, dist: Any, rank: int, world: int) -> Any:
    outputs = [torch.from_numpy(np.zeros(2, np.int64)) for _ in range(world)]
    dist.all_gather(outputs, torch.from_numpy(np.array([rank, rank * rank])))
    return sum(output.numpy() for output in outputs[: rank + 1])


def sort_by_samples(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Ranks exchange what belongs to each other's range, and sort it."""
    values = np.arange(12) * 7 % 12 + 100 * rank % 12
    owners = values * world // 48
    sizes = np.bincount(owners, minlength=world)
    counts = torch.from_numpy(np.zeros(world, np.int64))
    dist.all_to_all_single(counts, torch.from_numpy(sizes))
    came = [int(count) for count in counts.numpy()]
    output = torch.from_numpy(np.zeros(sum(came), np.int64))
    sent = torch.from_numpy(values[np.argsort(owners, kind="stable")])
    dist.all_to_all_single(output, sent, came, [int(size) for size in sizes])
    return np.sort(output.numpy())


PROGRAMS = (ring_all_reduce, prefix_sum, sort_by_samples)
