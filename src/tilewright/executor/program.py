"""A program on its PE: what its calls issue, what its values occupy, when it waits."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, cast

import numpy as np

from tilewright import language
from tilewright.device.dma import Access
from tilewright.engine.core import NO_ROOM, NO_WALK
from tilewright.engine.issuer import Issuer
from tilewright.engine.spec import limit_error
from tilewright.errors import TileRoomError
from tilewright.executor.address import Translator
from tilewright.executor.error import held_text
from tilewright.executor.order import AccessOrder
from tilewright.executor.poll import note_wait
from tilewright.executor.run import Plan, ProgramTitle, Run
from tilewright.executor.stream import Stream
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType
from tilewright.language.eager import array_function
from tilewright.language.executor import current_program
from tilewright.language.front import Node, is_determined
from tilewright.language.source import SourceLine, line_text, source_line
from tilewright.language.value import Block
from tilewright.language.value_executor import ValueExecutor
from tilewright.machine.coords import HARDWARE_AXES, place_on_axis


class Program(ValueExecutor):
    """One instance of a kernel. Its calls return at once; the graph says when things happen."""

    watch: Any = None  # a ProgramWatch, where a sanitizer looks on
    last_read = 0  # the first virtual byte of the last load or atomic

    def __init__(
        self, run: Run, stream: Stream, translator: Translator, ids: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.run = run
        self.stream = stream
        self.issuer: Issuer = stream.issuer
        if run.terms.observer is not None:
            self.issuer = run.terms.observer.watch(self, stream.issuer)
        self.translator = translator
        self.name = run.terms.kernel.name
        self.ids = ids
        self.counts = run.terms.grid
        self.title = ProgramTitle(ids, self.name, stream.pe.name)
        self.order = AccessOrder(stream.pe.issuer.window)
        self._plans = run.plans
        self._carries_data = run.terms.carries_data
        self._tiles: dict[int, tuple[BlockType, SourceLine]] = {}  # by value, for messages
        self._is_over = False
        self._first_command = stream.issuer.num_commands
        self.is_composing = False  # commands are parts of the one that was issued last
        self.last_walk = NO_WALK  # that its parts wait for so far

    def begin_anew(self, _ids: tuple[int, ...]) -> bool:
        """Be the next program of the PE, if one object can be all of them, one after the other."""
        return False

    def end(self) -> None:
        """All commands are issued; what the kernel still holds is let go."""
        self._is_over = True
        self._constants.clear()  # they refer to the program: so it goes without a collection
        self.issuer.finish()

    def compose(self, is_composing: bool) -> None:
        """Whether commands from now on are parts of the one that was issued last."""
        self.is_composing = is_composing

    @property
    def next_command(self) -> int:
        """The number of the command that the next access belongs to."""
        return self.issuer.num_commands + (not self.is_composing)

    @property
    def num_commands(self) -> int:
        """Commands that the program has issued so far."""
        return self.issuer.num_commands - self._first_command

    def hand_over_if_long(self) -> None:
        """Begin a command: hand those before it over if they are many; refuse one too many."""
        limit = self.run.terms.limits.commands
        if self.num_commands >= limit:
            where = f"{line_text(source_line())}, {self}"
            raise limit_error(where, f"more than {limit} commands", "commands", limit)
        if self.issuer.num_commands >= self.stream.piece_end and not self.is_composing:
            self.stream.hand_over_long(str(self), source_line())

    def trip(self, memory: int, access: Access, channel: int) -> int:
        """The way of accesses to a memory, built at the first of them."""
        trips, key = self.translator.trips, (memory, access, channel)
        trip = trips.get(key)
        if trip is None:
            kind, home = self.run.memories[memory].place
            coord = self.stream.pe.coord
            trip = trips[key] = self.run.device.pe_access(coord, home, access, channel, kind)
        return trip

    def known_load(self, _pointers: Any, _mask: Any, _other: Any) -> Block | None:
        """A load at known addresses by compiled code; None: it is another one, or there is none."""
        return None

    def known_store(self, _pointers: Any, _value: Any, _mask: Any) -> bool:
        """A store at known addresses, likewise: whether that was it."""
        return False

    def method(self, name: str, value: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return getattr(language, name)(value, *args, **kwargs)

    def _evaluated(self, block: Block, node: Node) -> np.ndarray[Any, Any]:
        """Wait until the elements of a block are there."""
        number = None if block.is_there else block.number
        if number is not None:
            self._await(self.issuer.task_of(number), block.type, node)
        found = super()._evaluated(block, node)
        block.is_there = True
        if number is not None:
            note_wait(self)
        return found

    def _await(self, task: int, kind: BlockType, node: Node) -> None:
        """The CPU goes on when a value is there. Its block is not held: it has to be let go.

        What follows from bytes that have been read is known now: then the next command waits, not
        the program.
        """
        if is_determined(node) and self.runs_ahead:
            self.issuer.stall(task)
            return
        line = source_line()
        self.stream.wait(task, lambda: f"{self} waits for {kind} at {line_text(line)}")

    @property
    def runs_ahead(self) -> bool:
        """Whether nothing that the program does but its commands happens at a time."""
        is_alone = self.translator.num_streams == 1 and self.run.post is None
        return is_alone and self.run.sanitizer is None and not self.is_composing

    # -- blocks ----------------------------------------------------------------------------------

    def carries(self, dtype: DType) -> bool:
        """Whether memory holds values of it: where only time is asked for, floats have none."""
        return self._carries_data or not dtype.is_floating()

    def _made(self, op: str, kind: BlockType, make: Callable[[], Any]) -> Block:
        """A block that a command makes out of nothing."""
        key = (op, (kind,), ())
        plan = self._plans.get(key)
        if plan is None:
            pe = self.stream.pe
            hold_ps = pe.vector.hold_ps(op, kind.num_elements, kind.dtype.device_name)
            plan = self._plans[key] = self.run.add_plan(Plan((kind,), make, hold_ps, 0))
        return self._command(plan, (), make)

    def compute(
        self, op: str, operands: tuple[Block, ...], attributes: tuple[Any, ...] = ()
    ) -> Any:
        """Issue a command of the vector or GEMM unit; a tuple of blocks if the op gives several."""
        plan = self.plan(op, tuple([operand.type for operand in operands]), attributes)
        if plan.is_view or plan.transposes:
            return self._view(plan, operands[0])
        if len(plan.types) > 1:
            return self.parts(plan, operands)
        return self._command(plan, operands, plan.run)

    def plan(self, op: str, types: tuple[BlockType, ...], attributes: tuple[Any, ...]) -> Plan:
        """How an op on operands of these types is carried out; made once a run."""
        key = (op, types, attributes)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self.run.plan(self.stream.pe, *key)
        return plan

    def _command(self, plan: Plan, operands: tuple[Block, ...], make: Callable[..., Any]) -> Block:
        """One command and its result. Every op ends here: this decides the language's speed."""
        self.hand_over_if_long()
        numbers, inputs = [], []
        for place, operand in enumerate(operands):
            number = operand.held if place < plan.num_factors else operand.number
            if number is not None:
                numbers.append(number)
            inputs.append(operand.node)
        number = self.issuer.compute(plan.number, numbers)
        if number == NO_ROOM:
            raise self.out_of_tcm(plan.types[0], plan.num_bytes)
        node = None
        if self._carries_data or not (plan.has_floats or None in inputs):
            node = Node(make, inputs, source_line())  # type: ignore[arg-type]  # all are nodes
        return Block(self, plan.types[0], node, number)

    def _view(self, plan: Plan, operand: Block) -> Block:
        """Another look at the same bytes: no command, and of a transposed block none yet."""
        number = operand.number
        node = None if operand.node is None else Node(plan.run, (operand.node,), None)
        parent = operand if operand.parent is None else operand.parent
        transposing = plan if plan.transposes else None
        if number is None:
            parent = None  # nobody holds a constant
        return Block(self, plan.types[0], node, number, parent, transposing)

    def placed(self, block: Block) -> Block:
        """A block whose bytes lie in their order: those of a transposed one are moved now.

        An access asks for it before it counts commands; for all others asking for the number does.
        """
        plan = block.transposing
        if plan is not None:
            number = self.issuer.compute(plan.number, [] if block.held is None else [block.held])
            if number == NO_ROOM:
                raise self.out_of_tcm(block.type, plan.num_bytes)
            block.held, block.parent, block.transposing = number, None, None  # bytes of its own
        return block

    def parts(self, plan: Plan, operands: tuple[Block, ...]) -> tuple[Block, ...]:
        """The results of one command: views of its whole value."""
        whole = self._command(plan, operands, plan.run)
        blocks = []
        for place, kind in enumerate(plan.types):
            node = None
            if whole.node is not None:
                node = Node(itemgetter(place), (whole.node,), whole.node.line)
            blocks.append(Block(self, kind, node, whole.number, whole))
        return tuple(blocks)

    # -- space -----------------------------------------------------------------------------------

    def note_tile(self, number: int, kind: BlockType, line: SourceLine) -> None:
        """A loaded tile, for the message of one that does not fit."""
        self._tiles[number] = (kind, line)

    def _held_tiles(self) -> list[tuple[BlockType, SourceLine]]:
        return list(self._tiles.values())

    def out_of_tcm(self, kind: BlockType, num_bytes: int) -> TileRoomError:
        """Return the error of a tile that does not fit, with everything that holds the TCM."""
        issuer, free_bytes = self.stream.pe.issuer, self.issuer.far_free_bytes
        held = held_text(self._held_tiles(), issuer.far_bytes - free_bytes, issuer.near_bytes)
        found = (
            f"a tile {kind} of {num_bytes} bytes with {free_bytes} of {issuer.far_bytes} bytes of"
            f" the TCM free; held: {held}"
        )
        fix = "use smaller tiles, or let go of some earlier"
        return self.room_error(found, "tiles that fit", fix)

    def release(self, number: int) -> None:
        """The kernel holds a value no more."""
        if not self._is_over:
            self.issuer.release(number)
            self._tiles.pop(number, None)

    # -- where it is -----------------------------------------------------------------------------

    def place(self, axis: Any) -> tuple[int, int]:
        """Likewise among the PEs, cubes and SIPs that the launch uses."""
        if axis not in HARDWARE_AXES:
            return super().place(axis)
        used = [stream.pe.coord for stream in self.run.streams]
        return place_on_axis(self.stream.pe.coord, used, axis)

    def array_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the kernel's on arrays; made once a run."""
        known = self.run.array_functions
        found = known.get(function)
        if found is None:
            found = known[function] = array_function(self, function)
        return found

    # -- words -----------------------------------------------------------------------------------

    def room_error(self, found: str, expected: str, fix: str) -> TileRoomError:
        """Return an error as `error` does, about space that a PE does not have."""
        return TileRoomError(*self.error(found, expected, fix).args)


def running_program() -> Program:
    """Return the program of a kernel that calls, as those know it who run it."""
    return cast("Program", current_program())
