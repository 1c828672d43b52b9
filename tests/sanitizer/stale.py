"""Accesses by pages that are not the PE's, or are no longer where they were."""

from dataclasses import replace
from typing import Any

from tests.sanitizer.field import BLOCK, Mistake, tensor
from tilewright import language as tl
from tilewright.host import DPPolicy, LocalShard, RuntimeContext, Tensor
from tilewright.memory import MapMsg

__all__ = ("MISTAKES",)

ROUNDS = 60


def read_row(x: Any, out: Any, row: Any, columns: Any) -> None:
    places = tl.arange(0, 8)
    block = tl.load(x + row * columns + places)
    tl.store(out + tl.program_id(0) * 8 + places, block)


def _rows(torch: RuntimeContext, wrong: bool, columns: int) -> None:
    """Four rows, one a PE; the kernel reads its own or the first one."""
    dp = DPPolicy(pe="row_wise", num_cubes=1)
    x, out = torch.zeros((4, columns), "f32", dp=dp, name="x"), tensor(torch, "out", 4 * BLOCK)
    given = x if wrong else LocalShard(x)
    torch.launch(read_row, given, out, 0, columns)


def foreign_row(torch: RuntimeContext, wrong: bool) -> None:
    """All rows lie in one page, of which each PE has a copy with its own row in it."""
    _rows(torch, wrong, 8)


def foreign_page(torch: RuntimeContext, wrong: bool) -> None:
    """Rows are longer than a page: of another's row some pages are not there at all."""
    _rows(torch, wrong, BLOCK + 8)


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


def _unmap(torch: RuntimeContext, x: Tensor) -> None:
    for message in torch.driver.tensors[x.address].mapping.unmap_messages():
        torch.submit(message)


def _map_elsewhere(torch: RuntimeContext, x: Tensor, other: Tensor) -> None:
    """The pages of one tensor become those of another, as a program that moves pages does it."""
    live = torch.driver.tensors
    there = live[other.address].mapping.map_messages()
    for message, target in zip(live[x.address].mapping.map_messages(), there, strict=True):
        mappings = tuple(
            replace(mapping, physical=place.physical)
            for mapping, place in zip(message.mappings, target.mappings, strict=True)
        )
        torch.submit(MapMsg(message.target, mappings))


def _changed_under_way(torch: RuntimeContext, wrong: bool, kernel: Any, *, moved: bool) -> None:
    x, out = tensor(torch, "x", BLOCK, 1.0), tensor(torch, "out", BLOCK, 0.0)
    other = tensor(torch, "other", BLOCK, 2.0)
    pending = torch.launch(kernel, x, out, grid=(1,), wait=False)
    if not wrong:
        pending.wait()
    _unmap(torch, x)
    if moved:
        _map_elsewhere(torch, x, other)
    pending.wait()
    torch.wait_all()


def unmapped_while_read(torch: RuntimeContext, wrong: bool) -> None:
    _changed_under_way(torch, wrong, many_reads, moved=False)


def unmapped_while_written(torch: RuntimeContext, wrong: bool) -> None:
    _changed_under_way(torch, wrong, many_writes, moved=False)


def moved_while_read(torch: RuntimeContext, wrong: bool) -> None:
    _changed_under_way(torch, wrong, many_reads, moved=True)


MISTAKES: tuple[Mistake, ...] = (
    foreign_row,
    foreign_page,
    unmapped_while_read,
    unmapped_while_written,
    moved_while_read,
)
