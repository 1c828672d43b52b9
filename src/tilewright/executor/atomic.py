"""Atomics: read, change and write elements where they are, when the memory serves the access."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.engine.core import NO_EFFECT, NO_ROOM
from tilewright.executor import dma
from tilewright.executor.address import Piece, addresses_of, aligned
from tilewright.executor.effect import Storage, read_pieces, write_pieces
from tilewright.executor.poll import note_poll
from tilewright.executor.program import Program
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, int4
from tilewright.language.front import Node, evaluate, not_captured
from tilewright.language.meaning.convert import from_compute, to_compute
from tilewright.language.source import source_line
from tilewright.language.value import Block
from tilewright.memory.sanitizer.access import AccessKind

Change = Callable[..., Any]

CHANGES: Mapping[str, Change] = {
    "add": lambda old, value: old + value,
    "and": lambda old, value: old & value,
    "cas": lambda old, expected, value: value if old == expected else old,
    "max": max,
    "min": min,
    "or": lambda old, value: old | value,
    "xchg": lambda _, value: value,
    "xor": lambda old, value: old ^ value,
}


@dataclass(eq=False, slots=True)
class _Change:
    """What an atomic does when its last byte has been served, element after element."""

    change: Change
    dtype: DType
    node: Node
    operands: Sequence[Node]
    storages: Sequence[Storage]
    pieces: Sequence[Piece]
    count: int

    def apply(self) -> bool:
        """Change the elements in memory; False if all are what they were."""
        # one at a time, in order: places of one access may share an address
        item_bytes = self.dtype.storage.itemsize
        widen = to_compute(self.dtype, self.dtype)
        narrow = from_compute(self.dtype.compute, self.dtype)
        operands = [widen(evaluate(node)) for node in self.operands]
        found = np.empty(self.count, self.dtype.storage)
        is_changed = False
        for piece in self.pieces:
            first = piece.skip_bytes // item_bytes
            for place in range(piece.num_bytes // item_bytes):
                address = piece.address + place * item_bytes
                at = Piece(piece.memory, address, 0, 1, 0, item_bytes, item_bytes, piece.walk)
                data = read_pieces(self.storages, [at], 1, item_bytes)
                old = data.view(self.dtype.storage).reshape(1)
                found[first + place] = old[0]
                values = [operand[first + place] for operand in operands]
                new = np.asarray([self.change(widen(old)[0], *values)], self.dtype.compute)
                changed = narrow(new).view(np.uint8).reshape(1, -1)
                is_changed |= not np.array_equal(changed, data)
                write_pieces(self.storages, [at], changed)
        self.node.settle(found)
        return is_changed


SEMS: Mapping[str | None, tuple[bool, bool]] = {  # whether it releases, and acquires
    None: (True, True),
    "acq_rel": (True, True),
    "release": (True, False),
    "acquire": (False, True),
    "relaxed": (False, False),
}


def _parse_sem(program: Program, sem: str | None) -> tuple[bool, bool]:
    """Return whether an atomic comes after all accesses before it, and all others after it.

    Without a word of Triton's it orders all accesses of its program.
    """
    found = SEMS.get(sem) if sem is None or isinstance(sem, str) else None
    if found is None:
        words = ", ".join(repr(word) for word in SEMS if word is not None)
        raise program.error(f"sem={sem!r}", f"one of {words}", "correct it")
    return found


def atomic(
    program: Program, op: str, pointer: Any, values: tuple[Any, ...], mask: Any, sem: str | None
) -> Block:
    """Issue an atomic; its value is what was in memory before."""
    note_poll(program, pointer)
    releases, acquires = _parse_sem(program, sem)
    shape = getattr(values[-1], "shape", ())
    pointers, mask = aligned(program, pointer, mask, shape)
    if program.watch is not None:
        program.watch.expect_atomic(releases=releases, acquires=acquires)
        pointers = program.watch.begin(AccessKind.ATOMIC, pointers)
    kind = block_type(pointers.element, pointers.shape)
    if kind.dtype is int4:
        found = f"an atomic on {kind}"
        raise program.error(found, "elements of whole bytes", "use int8, or load and store")
    operands = [
        program.placed(program.convert(program.block(value), kind.dtype, False)) for value in values
    ]
    if mask is False:
        return dma.filled(program, kind, 0)
    addresses, places = addresses_of(program, pointers, mask)
    if not addresses.size:
        return dma.filled(program, kind, 0)
    if (addresses % kind.dtype.storage.itemsize).any():
        found = f"an atomic on {kind} at an address that is no multiple of its elements"
        raise program.error(found, "aligned elements, each in one memory", "align the address")
    program.hand_over_if_long()
    layout, spans, pieces = dma.listed(program, addresses, kind.dtype)
    issuer, run = program.issuer, program.run
    if run.terms.replicas:
        dma.check_replicas(program, spans)
    program.order.release(releases)
    after = program.order.before_write(spans, issuer.num_commands + 1)
    after += [issuer.task_of(each.number) for each in operands if each.number is not None]
    node, served = None, NO_EFFECT
    inputs = [each.node for each in operands]
    if None not in inputs and program.carries(kind.dtype):
        node, served = _effect(program, op, kind, inputs, pieces, places, len(addresses))
    number = issuer.load(
        kind.num_bytes, dma.accesses_of(program, pieces, Access.WRITE), after, served
    )
    if number == NO_ROOM:
        raise program.out_of_tcm(kind, kind.num_bytes)
    task = issuer.task_of(number)
    program.order.note_write(spans, issuer.num_commands, task)
    program.last_read = spans[0].address
    if acquires:
        program.order.acquire(issuer.num_commands, task)
    run.counters.atomics += 1
    run.counters.stored_bytes += layout.num_bytes
    return Block(program, kind, node, number)


def atomic_load(program: Program, pointer: Any, mask: Any, sem: str | None) -> Any:
    """Issue a load that what follows may come after."""
    _, acquires = _parse_sem(program, sem)
    if program.watch is not None:
        program.watch.expect_atomic(acquires=acquires)
    note_poll(program, pointer)
    block = program.method("load", pointer, (mask,), {})
    if acquires and block.number is not None:
        program.order.acquire(program.issuer.num_commands, program.issuer.task_of(block.number))
    return block


def atomic_store(program: Program, pointer: Any, value: Any, mask: Any, sem: str | None) -> None:
    """Issue a store that may come after all before it."""
    releases, _ = _parse_sem(program, sem)
    if program.watch is not None:
        program.watch.expect_atomic(releases=releases)
    program.order.release(releases)
    program.method("store", pointer, (value, mask), {})
    program.order.release(False)  # a mask may have let nothing through


def _effect(
    program: Program,
    op: str,
    kind: BlockType,
    inputs: list[Any],
    pieces: list[Piece],
    places: Any,
    count: int,
) -> tuple[Node, int]:
    line = source_line()
    picked = [dma.picked(each, kind, places) for each in inputs]
    old = Node(not_captured, (), line)
    storages = program.run.storages
    change = _Change(CHANGES[op], kind.dtype, old, picked, storages, pieces, count)
    served = program.run.effects.add(change, len(pieces), program.title)

    def arrange(found: Any) -> Any:
        return dma.spread_out(found, places, kind, 0)

    return Node(arrange, (old,), line), served
