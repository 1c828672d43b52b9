"""Accesses outside of the tensor that they mean."""

from typing import Any

import numpy as np

from tests.sanitizer.field import BLOCK, Mistake, tensor
from tilewright import language as tl
from tilewright.host import DPPolicy, LocalShard, RuntimeContext

__all__ = ("MISTAKES",)

N = 4000
ROWS, COLUMNS, PITCH = 64, 60, 62


def missing_mask(torch: RuntimeContext, wrong: bool) -> None:
    """The last block reaches into the rest of a page."""

    def kernel(x: Any, out: Any, n: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = places < n
        block = tl.load(x + places) if wrong else tl.load(x + places, mask=inside)
        tl.store(out + places, block, mask=inside)

    x, out = tensor(torch, "x", N, 1.0), tensor(torch, "out", N)
    torch.launch(kernel, x, out, N, grid=(4,))


def neighbour(torch: RuntimeContext, wrong: bool) -> None:
    """One program too many stores into the tensor behind."""

    def kernel(out: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + places, tl.zeros((BLOCK,), tl.float32))

    out, behind = tensor(torch, "out", 4 * BLOCK), tensor(torch, "behind", 4 * BLOCK, 1.0)
    torch.launch(kernel, out, grid=(5 if wrong else 4,), on=behind)


def before_the_start(torch: RuntimeContext, wrong: bool) -> None:
    """The element to the left of the first one is of another tensor."""

    def kernel(x: Any, out: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        left = places - 1
        block = tl.load(x + left) if wrong else tl.load(x + left, mask=left >= 0)
        tl.store(out + places, block)

    out, x = tensor(torch, "out", 4 * BLOCK, 0.0), tensor(torch, "x", 4 * BLOCK, 1.0)
    torch.launch(kernel, x, out, grid=(4,))


def wrong_pitch(torch: RuntimeContext, wrong: bool) -> None:
    """Rows that are taken for longer than they are leave the tensor in the end."""

    def kernel(x: Any, out: Any, pitch: Any) -> None:
        rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
        block = tl.load(x + rows * pitch + columns)
        tl.store(out + rows * COLUMNS + columns, block)

    x, out = tensor(torch, "x", ROWS * PITCH, 1.0), tensor(torch, "out", ROWS * COLUMNS)
    torch.launch(kernel, x, out, PITCH + 1 if wrong else PITCH, grid=(1,))


def unchecked_window(torch: RuntimeContext, wrong: bool) -> None:
    """A block pointer knows where the tensor ends; nobody asks it."""

    def kernel(x: Any, out: Any) -> None:
        start = tl.program_id(0) * BLOCK
        window = tl.make_block_ptr(x, (N,), (1,), (start,), (BLOCK,), (0,))
        block = tl.load(window) if wrong else tl.load(window, boundary_check=(0,))
        places = start + tl.arange(0, BLOCK)
        tl.store(out + places, block, mask=places < N)

    x, out = tensor(torch, "x", N, 1.0), tensor(torch, "out", N)
    torch.launch(kernel, x, out, grid=(4,))


def wild_index(torch: RuntimeContext, wrong: bool) -> None:
    """One of the indices that were loaded is as large as the tensor."""

    def kernel(x: Any, indices: Any, out: Any) -> None:
        places = tl.arange(0, 64)
        tl.store(out + places, tl.load(x + tl.load(indices + places)))

    x, out = tensor(torch, "x", N, 1.0), tensor(torch, "out", 64)
    picked = np.arange(64) * 62
    picked[-1] = N if wrong else N - 1
    torch.launch(kernel, x, tensor(torch, "indices", 64, picked, "i64"), out, grid=(1,))


def behind_the_shard(torch: RuntimeContext, wrong: bool) -> None:
    """The last PE's shard ends inside a page, and its program goes on."""

    def kernel(shard: Any) -> None:
        places = tl.arange(0, 8)
        if tl.program_id(0) == 3:
            tl.store(shard + places, tl.zeros((8,), tl.float32), mask=places < (8 if wrong else 5))

    x = torch.empty((4, 5), "f32", dp=DPPolicy(pe="row_wise", num_cubes=1), name="x")
    torch.launch(kernel, LocalShard(x))


MISTAKES: tuple[Mistake, ...] = (
    missing_mask,
    neighbour,
    before_the_start,
    wrong_pitch,
    unchecked_window,
    wild_index,
    behind_the_shard,
)
