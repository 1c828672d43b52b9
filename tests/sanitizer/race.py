"""Accesses of programs, or of programs and the host, that nothing orders."""

from typing import Any

import numpy as np

from tests.sanitizer.field import BLOCK, Mistake, tensor
from tilewright import language as tl
from tilewright.host import RuntimeContext
from tilewright.runtime.message import MemoryWriteMsg

__all__ = ("MISTAKES",)

N = 4 * BLOCK


def same_tile(torch: RuntimeContext, wrong: bool) -> None:
    """Every program stores the whole result, or each its part."""

    def kernel(out: Any) -> None:
        start = 0 if wrong else tl.program_id(0) * BLOCK
        tl.store(out + start + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))

    torch.launch(kernel, tensor(torch, "out", N), grid=(4,))


def shared_sum(torch: RuntimeContext, wrong: bool) -> None:
    """Split-k: parts of a sum are added where it lies."""

    def kernel(x: Any, out: Any) -> None:
        part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
        if wrong:
            tl.store(out, tl.load(out) + part)
        else:
            tl.atomic_add(out, part)

    torch.launch(kernel, tensor(torch, "x", N, 1.0), tensor(torch, "out", N, 0.0), grid=(4,))


def shifted_in_place(torch: RuntimeContext, wrong: bool) -> None:
    """The left neighbour of a block's first element is another program's."""

    def kernel(x: Any, out: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        left = tl.load(x + places - 1, mask=places > 0)
        tl.store((x if wrong else out) + places, left)

    torch.launch(kernel, tensor(torch, "x", N, 1.0), tensor(torch, "out", N), grid=(4,))


def overlapping_tiles(torch: RuntimeContext, wrong: bool) -> None:
    """Tiles share one element."""

    def kernel(out: Any) -> None:
        places = tl.program_id(0) * (BLOCK - wrong) + tl.arange(0, BLOCK)
        tl.store(out + places, tl.zeros((BLOCK,), tl.float32))

    torch.launch(kernel, tensor(torch, "out", N), grid=(4,))


def impatient_launch(torch: RuntimeContext, wrong: bool) -> None:
    """The second launch needs what the first one writes; the host does not wait."""

    def double(x: Any, out: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + places, 2 * tl.load(x + places))

    x, y, z = tensor(torch, "x", N, 1.0), tensor(torch, "y", N, 0.0), tensor(torch, "z", N)
    torch.launch(double, x, y, grid=(4,), wait=not wrong)
    torch.launch(double, y, z, grid=(4,), wait=not wrong)
    torch.wait_all()


def impatient_host(torch: RuntimeContext, wrong: bool) -> None:
    """The host writes what a launch reads."""

    def read(x: Any, out: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + places, tl.load(x + places))

    x, out = tensor(torch, "x", BLOCK, 1.0), tensor(torch, "out", BLOCK)
    pending = torch.launch(read, x, out, grid=(1,), wait=not wrong)
    (home,) = x.placement.homes
    (piece,) = torch.driver.tensors[x.address].pieces(home)
    address = torch.machine.addresses.hbm(piece.place.pe, piece.offset).value
    torch.submit(MemoryWriteMsg(address, PAGE_BYTES))
    pending.wait()
    torch.wait_all()


PAGE_BYTES = 4 * BLOCK


def composite_results(torch: RuntimeContext, wrong: bool) -> None:
    """Composites of two programs store into one matrix, or each into its own."""

    def kernel(a: Any, out: Any) -> None:
        left = tl.ref(a, (32, 32))
        start = 0 if wrong else tl.program_id(0) * 1024
        tl.composite("gemm", left, left, out + start, tile_shape=(16, 16, 32))

    a, out = tensor(torch, "a", BLOCK, 1.0), tensor(torch, "out", 2 * BLOCK)
    torch.launch(kernel, a, out, grid=(2,))


def early_flag(torch: RuntimeContext, wrong: bool) -> None:
    """An atomic says that data are there: after what was stored, or whenever it likes."""

    def kernel(data: Any, flag: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.zeros((BLOCK,), tl.float32))
            tl.atomic_xchg(flag, 1.0, sem="relaxed" if wrong else None)
        else:
            while tl.atomic_add(flag, 0.0) == 0.0:
                pass
            tl.store(out + places, tl.load(data + places))

    data, out = tensor(torch, "data", 2 * BLOCK), tensor(torch, "out", 2 * BLOCK)
    torch.launch(kernel, data, tensor(torch, "flag", 2 * BLOCK, 0.0), out, grid=(2,))


def histogram(torch: RuntimeContext, wrong: bool) -> None:
    """Counters that programs share."""

    def kernel(x: Any, bins: Any) -> None:
        places = tl.program_id(0) * 64 + tl.arange(0, 64)
        picked = bins + tl.load(x + places)
        if wrong:
            tl.store(picked, tl.load(picked) + 1.0)
        else:
            tl.atomic_add(picked, 1.0)

    x = tensor(torch, "x", 2 * BLOCK, np.arange(2 * BLOCK) % 5, "i64")
    torch.launch(kernel, x, tensor(torch, "bins", 2 * BLOCK, 0.0), grid=(4,))


MISTAKES: tuple[Mistake, ...] = (
    same_tile,
    shared_sum,
    shifted_in_place,
    overlapping_tiles,
    impatient_launch,
    impatient_host,
    composite_results,
    early_flag,
    histogram,
)
