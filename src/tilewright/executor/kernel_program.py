"""Programs with all that a kernel can ask for; where compiled code issues, it does what it can."""

from collections.abc import Callable
from typing import Any

from tilewright.executor.atomic import atomic, atomic_load, atomic_store
from tilewright.executor.composite import run_composite
from tilewright.executor.dma import load, store
from tilewright.executor.message import peek, receive, send
from tilewright.executor.poll import note_poll
from tilewright.executor.program import Program
from tilewright.executor.run import Outcome, Plan, Run
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType, int4
from tilewright.language.source import SourceLine
from tilewright.language.value import Block, Pointers

# names of the module, since an enum finds its members by a function
ISSUED, UNSUPPORTED, BATCH_FULL, OFFSETS_PENDING = Outcome


class KernelProgram(Program):
    """A program with accesses, composites and messages: functions of programs as its methods."""

    load = load
    store = store
    atomic = atomic
    atomic_load = atomic_load
    atomic_store = atomic_store
    note_poll = note_poll
    composite = run_composite
    send = send
    receive = receive
    peek = peek


def program_class(run: Run) -> type[KernelProgram]:
    """Of the running stream: on compiled code if there is any and nobody watches its commands."""
    observer = run.terms.observer
    is_watched = observer is not None and observer.is_watching(run.hub.running.number)
    return KernelProgram if run.front is None or is_watched else NativeProgram


class NativeProgram(KernelProgram):
    """Operators of blocks go to the desk by themselves; these calls are for all others."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        run, stream, translator = self.run, self.stream, self.translator
        front: Any = run.front
        self.order = front.AccessOrder(stream.pe.issuer.window)  # of the same methods
        if translator.paths is None:
            channels = translator.channels
            translator.paths = front.PathFinder(translator.mmu, translator.locate, channels)
        self.desk = front.Desk(
            self, run.shelf, stream.walker, stream.issuer, run.effects, translator.paths, self.order
        )
        self.desk.begin(self.title)
        self.desk.piece_end = stream.piece_end
        self.desk.max_commands = run.terms.limits.commands
        # the desk's own, since every op of the library and every program comes here: a frame less
        self.compute = self.desk.compute  # type: ignore[method-assign]
        self.index_range = self.desk.range  # type: ignore[method-assign]
        self.begin_anew = self.desk.begin_anew  # type: ignore[method-assign]

    def end(self) -> None:
        self.desk.end()
        super().end()

    def compose(self, is_composing: bool) -> None:
        super().compose(is_composing)
        self.desk.is_composing = is_composing

    def pointers(self, address: int, element: DType) -> Pointers:
        if element is int4:
            return super().pointers(address, element)
        pointers: Pointers = self.desk.pointers(address, element, element.step)
        return pointers

    def _known_binary(self, op: str, left: Any, right: Any) -> Any:
        front: Any = self.run.front
        known = front.known_binary(op, left, right)
        return super()._known_binary(op, left, right) if known is None else known

    def known_load(self, pointers: Any, mask: Any, other: Any) -> Block | None:
        if self.is_composing:
            return None
        found = self.desk.load(pointers, mask, other)
        if found is OFFSETS_PENDING:
            self.elements(pointers.offsets)
            found = self.desk.load(pointers, mask, other)
        if found is BATCH_FULL:
            self.hand_over_if_long()
            found = self.desk.load(pointers, mask, other)
        return None if found is UNSUPPORTED else found

    def known_store(self, pointers: Any, value: Any, mask: Any) -> bool:
        if self.is_composing:
            return False
        outcome = self.desk.store(pointers, value, mask)
        if outcome is BATCH_FULL:
            self.hand_over_if_long()
            outcome = self.desk.store(pointers, value, mask)
        return outcome is ISSUED

    @property
    def last_read(self) -> int:
        address: int = self.desk.last_read
        return address

    @last_read.setter
    def last_read(self, address: int) -> None:
        self.desk.last_read = address

    @property
    def num_commands(self) -> int:
        return self.issuer.num_commands - self.desk.first_command  # type: ignore[no-any-return]

    def hand_over_if_long(self) -> None:
        """Also called by compiled code that issues a command: nothing of it is half done then."""
        super().hand_over_if_long()
        self.desk.piece_end = self.stream.piece_end

    def _command(self, plan: Plan, operands: tuple[Block, ...], make: Callable[..., Any]) -> Block:
        block: Block = self.desk.command(plan, operands, make)
        return block

    def note_tile(self, number: int, kind: BlockType, line: SourceLine) -> None:
        self.desk.note_tile(number, kind, *line)

    def _held_tiles(self) -> list[tuple[BlockType, SourceLine]]:
        tiles: list[tuple[BlockType, SourceLine]] = self.desk.tiles()
        return tiles
