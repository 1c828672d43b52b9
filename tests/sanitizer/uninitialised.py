"""Reads of bytes that nobody has written."""

from typing import Any

import numpy as np

from tests.sanitizer.field import BLOCK, Mistake, tensor
from tilewright import language as tl
from tilewright.host import RuntimeContext

__all__ = ("MISTAKES",)

N = 4000


def copy(x: Any, out: Any, n: Any) -> None:
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, tl.load(x + places, mask=inside), mask=inside)


def fill(out: Any, n: Any) -> None:
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.zeros((BLOCK,), tl.float32), mask=places < n)


def add_to(out: Any, n: Any) -> None:
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, tl.load(out + places, mask=inside) + 1.0, mask=inside)


def product(a: Any, b: Any, out: Any) -> None:
    left, right = tl.ref(a, (32, 32)), tl.ref(b, (32, 32))
    tl.wait(tl.composite("gemm", left, right, out, tile_shape=(32, 32, 32)))


def gather(x: Any, indices: Any, out: Any) -> None:
    places = tl.arange(0, 64)
    tl.store(out + places, tl.load(x + tl.load(indices + places)))


def empty_operand(torch: RuntimeContext, wrong: bool) -> None:
    x, out = tensor(torch, "x", N), tensor(torch, "out", N)
    if not wrong:
        x.fill_(1.0)
    torch.launch(copy, x, out, N, grid=(4,))


def empty_sum(torch: RuntimeContext, wrong: bool) -> None:
    """A sum begins with zeros, or with what was there."""
    out = tensor(torch, "out", N)
    if not wrong:
        torch.launch(fill, out, N, grid=(4,))
    torch.launch(add_to, out, N, grid=(4,))


def forgotten_tail(torch: RuntimeContext, wrong: bool) -> None:
    """The first kernel writes whole blocks alone, the second one reads everything."""
    x, out = tensor(torch, "x", N), tensor(torch, "out", N)
    torch.launch(fill, x, N // BLOCK * BLOCK if wrong else N, grid=(4,))
    torch.launch(copy, x, out, N, grid=(4,))


def short_grid(torch: RuntimeContext, wrong: bool) -> None:
    """Programs are missing, and the host reads what they would have written."""
    x, out = tensor(torch, "x", N, 1.0), tensor(torch, "out", N)
    torch.launch(copy, x, out, N, grid=(3 if wrong else 4,))
    out.numpy()


def empty_weights(torch: RuntimeContext, wrong: bool) -> None:
    """A composite loads tiles that no line of the kernel names."""
    a, b = tensor(torch, "a", 1024, 1.0), tensor(torch, "b", 1024, None if wrong else 1.0)
    out = tensor(torch, "out", 1024)
    torch.launch(product, a, b, out, grid=(1,))


def hole(torch: RuntimeContext, wrong: bool) -> None:
    """A gather picks an element that the first kernel left out."""
    x, out = tensor(torch, "x", N), tensor(torch, "out", 64)
    indices = tensor(torch, "indices", 64, np.arange(64) * 7, "i64")
    torch.launch(fill, x, 441 if wrong else 442, grid=(1,))
    torch.launch(gather, x, indices, out, grid=(1,))


MISTAKES: tuple[Mistake, ...] = (
    empty_operand,
    empty_sum,
    forgotten_tail,
    short_grid,
    empty_weights,
    hole,
)
