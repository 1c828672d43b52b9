"""Some of the ranks."""

# ruff: noqa: ARG001  # all programs are called alike

from typing import Any

import numpy as np


def who_is_who(torch: Any, dist: Any, rank: int, world: int) -> Any:
    group = dist.new_group([world - 1, 0])
    return (
        dist.is_initialized(),
        dist.get_rank(),
        dist.get_world_size(),
        dist.get_rank(group) >= 0,
        dist.get_world_size(group) if rank in (0, world - 1) else None,
    )


def sum_without_the_last(torch: Any, dist: Any, rank: int, world: int) -> Any:
    group = dist.new_group(list(range(world - 1)))
    tensor = torch.from_numpy(np.full(6, rank + 1, np.float32))
    if rank < world - 1:
        dist.all_reduce(tensor, group=group)
    dist.all_reduce(tensor)
    return tensor.numpy()


def from_a_root_in_a_group(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Roots are ranks of the world."""
    group = dist.new_group([0, world - 1])
    tensor = torch.from_numpy(np.full(4, rank, np.float32))
    if rank in (0, world - 1):
        dist.broadcast(tensor, src=world - 1, group=group)
    dist.barrier()
    return tensor.numpy()


def a_group_for_each_pair(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.array([float(rank)]))
    pairs = [(low, high) for low in range(world) for high in range(low + 1, world)]
    for pair, group in [(pair, dist.new_group(list(pair))) for pair in pairs]:
        if rank in pair:
            dist.all_reduce(tensor, group=group)
    return tensor.numpy()


def called_by_others_too(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """What ranks outside of a group call is not done."""
    group = dist.new_group([0, world - 1])
    tensor = torch.from_numpy(np.full(4, rank + 1, np.float32))
    dist.all_reduce(tensor, group=group)
    dist.barrier(group)
    return tensor.numpy()


PROGRAMS = (
    who_is_who,
    sum_without_the_last,
    from_a_root_in_a_group,
    a_group_for_each_pair,
    called_by_others_too,
)
