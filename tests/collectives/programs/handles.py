"""Calls that are under way while others are made."""

# ruff: noqa: ARG001  # all programs are called alike

from typing import Any

import numpy as np


def many_at_once(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensors = [torch.from_numpy(np.full(5, rank + number, np.float32)) for number in range(6)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    return [tensor.numpy() for tensor in tensors]


def complete_after_waiting(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.ones(1000, np.float32))
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    return work.is_completed(), tensor.numpy()


def a_message_beside_a_sum(torch: Any, dist: Any, rank: int, world: int) -> Any:
    total = torch.from_numpy(np.full(64, rank, np.float32))
    note = torch.from_numpy(np.full(8, rank, np.float32))
    work = dist.all_reduce(total, async_op=True)
    if rank == 0:
        dist.send(note, dst=world - 1)
    if rank == world - 1:
        dist.recv(note, src=0)
    work.wait()
    dist.barrier()
    return total.numpy(), note.numpy()


PROGRAMS = (many_at_once, complete_after_waiting, a_message_beside_a_sum)
