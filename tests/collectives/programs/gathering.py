"""Tensors of all ranks, and parts for each of them."""

from typing import Any

import numpy as np


def from_every_rank(torch: Any, dist: Any, rank: int, world: int) -> Any:
    outputs = [torch.from_numpy(np.zeros((2, 3), np.int32)) for _ in range(world)]
    dist.all_gather(outputs, torch.from_numpy(np.full((2, 3), rank, np.int32)))
    return [output.numpy() for output in outputs]


def end_to_end(torch: Any, dist: Any, rank: int, world: int) -> Any:
    output = torch.from_numpy(np.zeros((2 * world, 3), np.float32))
    dist.all_gather_into_tensor(output, torch.from_numpy(np.full((2, 3), rank, np.float32)))
    return output.numpy()


def to_rank_one(torch: Any, dist: Any, rank: int, world: int) -> Any:
    mine = torch.from_numpy(np.arange(3) * rank)
    outputs = [torch.from_numpy(np.zeros(3, np.int64)) for _ in range(world)] if rank == 1 else None
    dist.gather(mine, outputs, dst=1)
    return None if outputs is None else [output.numpy() for output in outputs]


def from_rank_zero(torch: Any, dist: Any, rank: int, world: int) -> Any:
    output = torch.from_numpy(np.zeros(4, np.float32))
    parts = [torch.from_numpy(np.full(4, 3 * part, np.float32)) for part in range(world)]
    dist.scatter(output, parts if rank == 0 else None, src=0)
    return output.numpy()


def the_same_everywhere(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.full((3, 3), rank, np.uint8))
    dist.broadcast(tensor, src=world - 1)
    flags = torch.from_numpy(np.array([rank == 0, True, False]))
    dist.broadcast(flags, src=0)
    return tensor.numpy(), flags.numpy()


def uneven_exchange(torch: Any, dist: Any, rank: int, world: int) -> Any:
    sizes = [(rank + peer) % 3 for peer in range(world)]
    rows = [np.full((size, 2), 10 * rank + peer) for peer, size in enumerate(sizes)]
    output = torch.from_numpy(np.zeros((sum(sizes), 2), np.int64))
    dist.all_to_all_single(output, torch.from_numpy(np.concatenate(rows)), sizes, sizes)
    return output.numpy()


def even_exchange(torch: Any, dist: Any, rank: int, world: int) -> Any:
    output = torch.from_numpy(np.zeros(2 * world, np.float32))
    dist.all_to_all_single(output, torch.from_numpy(np.arange(2 * world, dtype=np.float32) + rank))
    return output.numpy()


def parts_of_a_sum(torch: Any, dist: Any, rank: int, world: int) -> Any:
    output = torch.from_numpy(np.zeros((2, 2), np.float32))
    whole = np.arange(4 * world, dtype=np.float32).reshape(2 * world, 2) * (rank + 1)
    dist.reduce_scatter_tensor(output, torch.from_numpy(whole))
    return output.numpy()


PROGRAMS = (
    from_every_rank,
    end_to_end,
    to_rank_one,
    from_rank_zero,
    the_same_everywhere,
    uneven_exchange,
    even_exchange,
    parts_of_a_sum,
)
