"""Small pieces of parallel training and inference."""

# ruff: noqa: ARG001  # all programs are called alike

from typing import Any

import numpy as np


def averaged_gradients(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Data parallel: a step of linear regression, the same weights on all ranks."""
    weights = np.zeros(3)
    inputs = np.eye(3)[[rank % 3, (rank + 1) % 3]]
    for _ in range(3):
        gradient = inputs.T @ (inputs @ weights - (1.0 + rank))
        total = torch.from_numpy(gradient)
        dist.all_reduce(total)
        weights = weights - 0.25 * total.numpy()
    return weights


def columns_then_rows(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Tensor parallel: two layers, one sum."""
    first = np.arange(4 * 2 * world, dtype=np.float32).reshape(4, 2 * world)
    second = np.arange(2 * world * 3, dtype=np.float32).reshape(2 * world, 3)
    mine = slice(2 * rank, 2 * rank + 2)
    hidden = np.maximum(np.ones((2, 4), np.float32) @ first[:, mine] - 20, 0)
    output = torch.from_numpy(hidden @ second[mine])
    dist.all_reduce(output)
    return output.numpy()


def experts(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Tokens go to the ranks of their experts and come back."""
    tokens = np.arange(2 * world, dtype=np.float32) + 10 * rank
    there = torch.from_numpy(np.zeros(2 * world, np.float32))
    dist.all_to_all_single(there, torch.from_numpy(tokens))
    back = torch.from_numpy(np.zeros(2 * world, np.float32))
    dist.all_to_all_single(back, torch.from_numpy(there.numpy() * (rank + 1)))
    return back.numpy()


def merged_softmax(torch: Any, dist: Any, rank: int, world: int) -> Any:
    """Attention over keys that are spread over ranks, merged by their maxima and sums."""
    scores = np.linspace(0, 1, 8) + rank
    values = np.arange(8) * (rank + 1.0)
    top = torch.from_numpy(np.array([scores.max()]))
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    weights = np.exp(scores - top.numpy())
    sums = torch.from_numpy(np.array([weights.sum(), (weights * values).sum()]))
    dist.all_reduce(sums)
    total, weighted = sums.numpy()
    return np.round(weighted / total, 9)


PROGRAMS = (averaged_gradients, columns_then_rows, experts, merged_softmax)
