"""Loads and stores: from blocks of addresses to accesses of the DMA channels."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.device.mmu import Walk
from tilewright.engine.core import NO_EFFECT, NO_ROOM, NO_VALUE, IssuedAccess
from tilewright.errors import AddressError
from tilewright.executor.address import Piece, aligned, items_of
from tilewright.executor.effect import Capture, Commit
from tilewright.executor.layout import (
    Layout,
    PackedLayout,
    aligned_spans,
    layout_of,
    listed_halves,
    packed_layout,
    runs_of_addresses,
)
from tilewright.executor.order import Span
from tilewright.executor.program import Program
from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, int1, int4
from tilewright.language.front import Node, not_captured
from tilewright.language.source import source_line
from tilewright.language.value import Block, Pointers
from tilewright.memory.sanitizer.access import AccessKind
from tilewright.memory.sanitizer.bounds import access_text

Reached = tuple[Layout | PackedLayout, list[Span], list[Piece]]
"""How an access lies in memory, where in virtual addresses, and in which memories."""


def load(program: Program, pointers: Any, mask: Any, other: Any) -> Block:
    """Read a block from memory into the TCM."""
    known = program.known_load(pointers, mask, other)
    if known is not None:
        return known
    pointers, mask = aligned(program, pointers, mask)
    kind = block_type(pointers.element, pointers.shape)
    if other is not None and not isinstance(other, bool | int | float):
        return _load_beside(program, pointers, mask, other)
    if program.watch is not None:
        pointers = program.watch.begin(AccessKind.LOAD, pointers)
    if mask is False:
        return filled(program, kind, other)
    if pointers.offsets is not None or type(mask) is Block:
        return _gathered_load(program, pointers, mask, kind, other)
    box = Box.whole(pointers.shape) if mask is None else mask.box
    if box.is_empty:
        return filled(program, kind, other)
    program.hand_over_if_long()
    return _issue_load(program, kind, _reached(program, pointers, box), other)


def _load_beside(program: Program, pointers: Pointers, mask: Any, other: Any) -> Block:
    """With a block of values for the places that the mask keeps out."""
    loaded = load(program, pointers, mask, None)
    if mask is None:
        return loaded
    if mask is False:
        mask = program.constant(False, int1)
    value = program.convert(program.block(other), pointers.element, False)
    operands = (program.block(mask), loaded, value)
    return program.compute("where", operands)  # type: ignore[no-any-return]


def _issue_load(
    program: Program,
    kind: BlockType,
    reached: Reached,
    other: Any,
    arrange: Callable[[Any], Any] | None = None,
) -> Block:
    """``arrange`` makes the block out of the elements, if they do not lie as its places do."""
    issuer, run = program.issuer, program.run
    layout, spans, pieces = reached
    command = program.next_command
    after = program.order.before_read(spans, command)
    node, served = None, NO_EFFECT
    line = source_line()
    if program.carries(kind.dtype):
        fill = 0 if other is None else program.element(other, kind.dtype)
        node = Node(not_captured, (), line)
        capture = Capture(node, run.storages, pieces, layout, kind.dtype, fill)
        served = run.effects.add(capture, len(pieces), program.title)
        if arrange is not None:
            node = Node(arrange, (node,), line)
    accesses = accesses_of(program, pieces, Access.READ)
    number = issuer.load(kind.num_bytes, accesses, after, served)
    if number == NO_ROOM:
        raise program.out_of_tcm(kind, kind.num_bytes)
    program.order.note_read(spans, command, issuer.task_of(number))
    program.last_read = spans[0].address
    program.note_tile(number, kind, line)
    run.counters.loads += 1
    run.counters.loaded_bytes += layout.num_bytes
    return Block(program, kind, node, number)


def accesses_of(program: Program, pieces: list[Piece], access: Access) -> list[IssuedAccess]:
    """What the issuer is told of pieces.

    The parts of a composite are translated all at one time, and go out in their order: none is
    before one whose pages have to be looked up.
    """
    if program.is_composing:
        last = max(program.last_walk, *[piece.walk for piece in pieces])
        program.last_walk = last
        pieces = [piece._replace(walk=last) for piece in pieces]
    channel = program.translator.channels.take(access)
    return [
        (program.trip(memory, access, channel), count, num_bytes, stride_bytes, address, walk)
        for memory, address, _, count, _, num_bytes, stride_bytes, walk in pieces
    ]


def store(program: Program, pointers: Any, value: Any, mask: Any) -> None:
    """Write a block to memory, from registers through the TCM."""
    if program.known_store(pointers, value, mask):
        return
    pointers, mask = aligned(program, pointers, mask, getattr(value, "shape", ()))
    if program.watch is not None:
        pointers = program.watch.begin(AccessKind.STORE, pointers)
    block = program.placed(program.convert(program.block(value), pointers.element, False))
    if mask is False:
        return
    kind = block_type(pointers.element, pointers.shape)
    if pointers.offsets is not None or type(mask) is Block:
        _scattered_store(program, pointers, mask, block, kind)
        return
    box = Box.whole(pointers.shape) if mask is None else mask.box
    if box.is_empty:
        return
    program.hand_over_if_long()
    _issue_store(program, block, kind, _reached(program, pointers, box))


def _reached(program: Program, pointers: Pointers, box: Box) -> Reached:
    """Where the places inside a box lie."""
    affine, element = pointers.affine, pointers.element
    layout = layout_of(affine, box, element.step)
    if element is not int4:
        spans = program.translator.spans(affine.base, layout)
        return layout, spans, _pieces(program, spans)
    whole_bytes = aligned_spans(affine.base, layout)
    if whole_bytes is not None:
        return packed_layout(layout), whole_bytes, _pieces(program, whole_bytes)
    return _reached_halves(program, affine.array(np.dtype(np.int64))[box.slices], box)


def _pieces(program: Program, spans: list[Span]) -> list[Piece]:
    """Return where an access of the next command lies, or raise an AddressError."""
    try:
        return program.translator.pieces(spans, Walk(program.stream.walker, program.next_command))
    except AddressError as fault:
        book, pe = program.run.tensors(), program.stream.pe.coord
        raise fault.explained(*access_text(book, pe, spans, fault.address)) from None


def _issue_store(program: Program, block: Block, kind: BlockType, reached: Reached) -> None:
    issuer, run = program.issuer, program.run
    layout, spans, pieces = reached
    command = program.next_command
    if run.terms.replicas:
        check_replicas(program, spans)
    after = program.order.before_write(spans, command)
    served = NO_EFFECT
    if block.node is not None and program.carries(kind.dtype):
        commit = Commit(block.node, run.storages, pieces, layout)
        served = run.effects.add(commit, len(pieces), program.title)
    accesses = accesses_of(program, pieces, Access.WRITE)
    value = NO_VALUE if block.number is None else block.number
    task = issuer.store(value, layout.num_bytes, accesses, after, served)
    if task == NO_ROOM:
        raise program.out_of_tcm(kind, layout.num_bytes)
    program.order.note_write(spans, command, task)
    run.counters.stores += 1
    run.counters.stored_bytes += layout.num_bytes


def check_replicas(program: Program, spans: list[Span]) -> None:
    """Refuse a store into a second copy of a tensor: the copies would differ."""
    pe = program.stream.pe.coord
    for span, replicated in product(spans, program.run.terms.replicas):
        if span.address >= replicated.high or span.end <= replicated.low:
            continue
        if replicated.stored_by is None:
            replicated.stored_by, replicated.storer = pe, str(program)
        elif replicated.stored_by != pe:
            both = f"{replicated.storer} and {program}"
            found = f"stores into copies of tensor {replicated.tensor!r} by {both}"
            expected = "one program that stores into a tensor with copies"
            raise program.error(found, expected, "split the tensor, or store from one program")


def filled(program: Program, kind: BlockType, other: Any) -> Block:
    """A load that reads nothing."""
    scalar = program.constant(0 if other is None else other, kind.dtype)
    return program.compute("broadcast_to", (scalar,), (kind.shape,))  # type: ignore[no-any-return]


# -- addresses that had to be computed -------------------------------------------------------------


def _gathered_load(
    program: Program, pointers: Pointers, mask: Any, kind: BlockType, other: Any
) -> Block:
    program.run.counters.gathers += 1
    addresses, num_elements, places = items_of(program, pointers, mask)
    if not addresses.size:
        return filled(program, kind, other)
    program.hand_over_if_long()
    reached = listed(program, addresses, kind.dtype, num_elements)
    fill = 0 if other is None else program.element(other, kind.dtype)

    def arrange(elements: Any) -> Any:
        return spread_out(elements, places, kind, fill)

    return _issue_load(program, kind, reached, None, arrange)


def _scattered_store(
    program: Program, pointers: Pointers, mask: Any, block: Block, kind: BlockType
) -> None:
    program.run.counters.gathers += 1
    addresses, num_elements, places = items_of(program, pointers, mask)
    if not addresses.size:
        return
    listed_kind = block_type(kind.dtype, (len(addresses) * num_elements,))
    part = Block(program, listed_kind, None, block.number, block)
    if block.node is not None:
        part.node = picked(block.node, kind, places)
    program.hand_over_if_long()
    reached = listed(program, addresses, kind.dtype, num_elements)
    _issue_store(program, part, part.type, reached)


def picked(node: Node, kind: BlockType, places: Any) -> Node:
    """Return the elements at some places of a block that a value is broadcast to."""

    def pick(value: Any) -> Any:
        return np.broadcast_to(value, kind.shape).reshape(-1)[places]

    return Node(pick, (node,), source_line())


def spread_out(found: Any, places: Any, kind: BlockType, fill: Any) -> Any:
    block = np.full(kind.num_elements, fill, kind.dtype.storage)
    block[places] = found
    return block.reshape(kind.shape)


def listed(program: Program, addresses: Any, dtype: DType, num_elements: int = 1) -> Reached:
    """Items of so many elements as one long segment whose parts lie anywhere."""
    box = Box.whole((len(addresses) * num_elements,))
    if dtype is int4:
        return _reached_halves(program, addresses, box)
    layout = layout_of(Affine(0, (dtype.step,), box.shape), box, dtype.step)
    return layout, *_runs(program, addresses, dtype.step * num_elements)


def _reached_halves(program: Program, addresses: Any, box: Box) -> Reached:
    found, layout = listed_halves(addresses, box)
    return layout, *_runs(program, found, 1)


def _runs(program: Program, addresses: Any, item_bytes: int) -> tuple[list[Span], list[Piece]]:
    runs = runs_of_addresses(addresses, item_bytes)
    spans = [Span(address, 1, size, size) for _, address, size in runs]
    pieces = []
    for (place, _, _), span in zip(runs, spans, strict=True):
        for piece in _pieces(program, [span]):
            skip = place * item_bytes + piece.skip_bytes
            pieces.append(piece._replace(skip_bytes=skip))
    return spans, pieces
