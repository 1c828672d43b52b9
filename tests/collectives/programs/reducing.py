"""Reductions."""

# ruff: noqa: ARG001  # all programs are called alike

from typing import Any

import numpy as np


def sums_of_floats(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.arange(24, dtype=np.float32).reshape(2, 3, 4) * (rank + 1))
    dist.all_reduce(tensor)
    return tensor.numpy()


def products_of_doubles(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.linspace(1, 2, 5) + rank)
    dist.all_reduce(tensor, op=dist.ReduceOp.PRODUCT)
    return np.round(tensor.numpy(), 9)


def smallest_and_largest_bytes(torch: Any, dist: Any, rank: int, world: int) -> Any:
    values = np.array([7, -3, 100, -100], np.int8) + np.int8(rank)
    low, high = torch.from_numpy(values.copy()), torch.from_numpy(values.copy())
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return low.numpy(), high.numpy()


def sums_that_wrap(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.full(3, 100, np.int8))
    dist.all_reduce(tensor)
    return tensor.numpy()


def bits(torch: Any, dist: Any, rank: int, world: int) -> Any:
    ops = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)
    tensors = [torch.from_numpy(np.array([1 << rank, 7, 6 + rank], np.int64)) for _ in ops]
    for tensor, op in zip(tensors, ops, strict=True):
        dist.all_reduce(tensor, op=op)
    return [tensor.numpy() for tensor in tensors]


def nothing_and_one(torch: Any, dist: Any, rank: int, world: int) -> Any:
    empty = torch.from_numpy(np.zeros((0, 4), np.float32))
    scalar = torch.from_numpy(np.array([rank + 0.5], np.float32))
    dist.all_reduce(empty)
    dist.all_reduce(scalar)
    return empty.numpy(), scalar.numpy()


def to_the_last_rank(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.arange(9, dtype=np.float32) + rank)
    dist.reduce(tensor, dst=world - 1)
    return tensor.numpy() if rank == world - 1 else None


def halves(torch: Any, dist: Any, rank: int, world: int) -> Any:
    tensor = torch.from_numpy(np.arange(33, dtype=np.float16) + np.float16(rank))
    dist.all_reduce(tensor)
    return tensor.numpy()


PROGRAMS = (
    sums_of_floats,
    products_of_doubles,
    smallest_and_largest_bytes,
    sums_that_wrap,
    bits,
    nothing_and_one,
    to_the_last_rank,
    halves,
)
