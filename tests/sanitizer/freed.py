"""Accesses to tensors that are no more."""

from typing import Any

from tests.sanitizer.field import BLOCK, Mistake, tensor
from tilewright import language as tl
from tilewright.host import RuntimeContext

__all__ = ("MISTAKES",)

ROUNDS = 40


def read_by_table(table: Any, out: Any) -> None:
    """Of the pointers in a table, the tensor that the first one names."""
    places = tl.arange(0, 64)
    source = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(out + places, tl.load(source + places))


def write_by_table(table: Any) -> None:
    target = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(target + tl.arange(0, 64), tl.zeros((64,), tl.float32))


def kept_address(torch: RuntimeContext, wrong: bool) -> None:
    """A table still names a tensor that was freed."""
    x, out = tensor(torch, "x", BLOCK, 1.0), tensor(torch, "out", BLOCK)
    table = tensor(torch, "table", 1, x.address, "i64")
    if wrong:
        x.free()
    torch.launch(read_by_table, table, out, grid=(1,))


def taken_place(torch: RuntimeContext, wrong: bool) -> None:
    """Another tensor was made since, as large as the freed one."""
    x, out = tensor(torch, "x", BLOCK, 1.0), tensor(torch, "out", BLOCK)
    address = x.address
    x.free()
    other = tensor(torch, "other", BLOCK, 2.0)
    table = tensor(torch, "table", 1, address if wrong else other.address, "i64")
    torch.launch(read_by_table, table, out, grid=(1,))


def late_result(torch: RuntimeContext, wrong: bool) -> None:
    """A result goes to where a tensor was."""
    out = tensor(torch, "out", BLOCK)
    table = tensor(torch, "table", 1, out.address, "i64")
    if wrong:
        out.free()
    torch.launch(write_by_table, table, grid=(1,))


def many_reads(x: Any, out: Any) -> None:
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(ROUNDS):
        total += tl.load(x + places)
    tl.store(out + places, total)


def many_writes(x: Any, _out: Any) -> None:
    places = tl.arange(0, BLOCK)
    for _ in range(ROUNDS):
        tl.store(x + places, tl.zeros((BLOCK,), tl.float32))


def _freed_by_another(torch: RuntimeContext, wrong: bool, kernel: Any) -> None:
    """One worker frees what another worker's launch still uses."""
    x, out = tensor(torch, "x", BLOCK, 1.0), tensor(torch, "out", BLOCK, 0.0)
    pending = torch.launch(kernel, x, out, grid=(1,), wait=False)

    def worker() -> None:
        if not wrong:
            pending.wait()
        x.free()

    torch.driver.hub.spawn(worker, name="worker")
    pending.wait()
    torch.wait_all()


def freed_while_read(torch: RuntimeContext, wrong: bool) -> None:
    _freed_by_another(torch, wrong, many_reads)


def freed_while_written(torch: RuntimeContext, wrong: bool) -> None:
    _freed_by_another(torch, wrong, many_writes)


MISTAKES: tuple[Mistake, ...] = (
    kept_address,
    taken_place,
    late_result,
    freed_while_read,
    freed_while_written,
)
