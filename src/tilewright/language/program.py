"""A program on its PE: what its calls issue, what its values occupy, when it waits."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.device.mmu import Walk
from tilewright.engine.core import NO_ROOM, NO_WALK, Issuer
from tilewright.engine.limit import limit_error
from tilewright.errors import AddressError, KernelError, TileRoomError
from tilewright.language.affine import Affine
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.constant_dtype import constant_dtype, holds_index
from tilewright.language.dtype import DType, dtype_of, int4, int32
from tilewright.language.known import known_binary
from tilewright.language.node import Node, constant_node, evaluate, is_determined
from tilewright.language.order import AccessOrder, Span
from tilewright.language.pointer_convert import address_of, integers_of, pointers_of, pointers_to
from tilewright.language.poll import note_wait
from tilewright.language.program_title import ProgramTitle
from tilewright.language.run import Plan, Run
from tilewright.language.scalar import Int32, Int64
from tilewright.language.source import SourceLine, line_text, source_line
from tilewright.language.stream import Stream
from tilewright.language.tile_room import held_text
from tilewright.language.translate import Piece, Translator
from tilewright.language.value import Block, Index, Mask, Pointers, PointerType, Value
from tilewright.memory.address_text import access_text

__all__ = ("Program",)

INDEX_BITS = 32


class Program:
    """One instance of a kernel. Its calls return at once; the graph says when things happen."""

    watch: Any = None  # a ProgramWatch, where a sanitizer looks on
    desk: Any = None  # where compiled code issues its commands
    last_read = 0  # the first virtual byte of the last load or atomic

    def __init__(
        self,
        run: Run,
        stream: Stream,
        translator: Translator,
        name: str,
        ids: tuple[int, ...],
        counts: tuple[int, ...],
    ) -> None:
        self.run = run
        self.stream = stream
        self.issuer: Issuer = stream.issuer
        if run.observer is not None:
            self.issuer = run.observer.watch(self, stream.issuer)
        self.translator = translator
        self.name = name
        self.ids = ids
        self.counts = counts
        self.title = ProgramTitle(ids, name, stream.pe.name)
        self.order = self._build_order(stream.pe.issuer.window)
        self._constants: dict[tuple[Any, DType, type], Block] = {}
        self._plans = run.plans
        self._carries_data = run.carries_data
        self._tiles: dict[int, tuple[BlockType, SourceLine]] = {}  # by value, for messages
        self._is_over = False
        self._first_command = stream.issuer.num_commands
        self.is_composing = False  # commands are parts of the one that was issued last
        self.last_walk = NO_WALK  # that its parts wait for so far

    def _build_order(self, window: int) -> AccessOrder:
        return AccessOrder(window)

    def __str__(self) -> str:
        return str(self.title)

    def begin_anew(self, ids: tuple[int, ...]) -> bool:
        """Be the next program of the PE, if one object can be all of them, one after the other."""
        del ids
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
        if self.num_commands >= self.run.limits.commands:
            limit = self.run.limits.commands
            where = f"{line_text(source_line())}, {self}"
            raise limit_error(where, f"more than {limit} commands", "commands", limit)
        if self.issuer.num_commands >= self.stream.piece_end and not self.is_composing:
            self.stream.hand_over_long(str(self), source_line())

    def pieces(self, spans: list[Span]) -> list[Piece]:
        """Return where an access of the next command lies, or raise an AddressError."""
        try:
            return self.translator.pieces(spans, Walk(self.stream.walker, self.next_command))
        except AddressError as fault:
            book, pe = self.run.tensors(), self.stream.pe.coord
            raise fault.explained(*access_text(book, pe, spans, fault.address)) from None

    def trip(self, memory: int, access: Access, channel: int) -> int:
        """The way of accesses to a memory, built at the first of them."""
        trips, key = self.translator.trips, (memory, access, channel)
        trip = trips.get(key)
        if trip is None:
            trip = trips[key] = self.run.round_trip(self.stream.pe.coord, *key)
        return trip

    def known_load(self, pointers: Any, mask: Any, other: Any) -> Block | None:
        """A load at known addresses by compiled code; None: it is another one, or there is none."""
        del pointers, mask, other
        return None

    def known_store(self, pointers: Any, value: Any, mask: Any) -> bool:
        """A store at known addresses, likewise: whether that was it."""
        del pointers, value, mask
        return False

    # -- what a value asks for -------------------------------------------------------------------

    def binary(self, op: str, left: Any, right: Any) -> Any:
        if type(left) is Block and type(right) is Block:
            return self.compute(op, (left, right))  # most operators
        if type(left) is not Block and type(right) is not Block:
            known = known_binary(op, left, right)
            if known is not None:
                return known
        elif type(left) is not Block or type(right) is not Block:
            known = self._with_scalar(op, left, right)
            if known is not None:
                return known
        if isinstance(left, Pointers) or isinstance(right, Pointers):
            return self._offset(op, left, right)
        return self.compute(op, (self.block(left, right, op), self.block(right, left, op)))

    def _with_scalar(self, op: str, left: Any, right: Any) -> Any:
        """Indices and addresses with one integer that was loaded or computed: the CPU needs it.

        The program waits for it; the result then stays affine.
        """
        block, other = (left, right) if type(left) is Block else (right, left)
        if not isinstance(other, Index | Pointers) or block.shape or not block.dtype.is_int():
            return None
        if isinstance(other, Index) and not block.dtype.signed:
            return None  # an unsigned integer promotes an index
        number = (Int64 if block.dtype.bits > INDEX_BITS else Int32)(self.number(block))
        return self._known_binary(op, *((number, other) if block is left else (other, number)))

    def _known_binary(self, op: str, left: Any, right: Any) -> Any:
        """What no command has to compute, else None."""
        return known_binary(op, left, right)

    def unary(self, op: str, value: Any) -> Any:
        if isinstance(value, Index) and op == "neg":
            return self.binary("sub", 0, value)
        if isinstance(value, Mask) and op == "not":
            box = value.box.inverted()
            if box is not None:
                return Mask(self, box)
        return self.compute(op, (self.block(value),))

    def subscript(self, value: Any, key: Any) -> Any:
        """New axes and whole slices, as in ``x[:, None]``."""
        parts = key if isinstance(key, tuple) else (key,)
        for part in parts:
            if part is not None and part != slice(None):
                fix = "index memory with pointers, or use tl.gather"
                raise self.error(f"[{key!r}] of a block", "only None and : as subscripts", fix)
        rank = len(parts) - parts.count(None)
        if rank > len(value.shape):
            found = f"{rank} subscripts for the shape {value.shape}"
            raise self.error(found, "at most one an axis", "leave some out")
        for axis, part in enumerate(parts):
            if part is None:
                value = self.expand(value, axis)
        return value

    def expand(self, value: Any, axis: int) -> Any:
        """With a new axis of extent 1."""
        if isinstance(value, Index):
            return Index(self, value.affine.expanded(axis), value.dtype)
        if isinstance(value, Mask):
            return Mask(self, value.box.expanded(axis))
        if isinstance(value, Pointers):
            offsets = value.offsets
            wide = None if offsets is None else self.expand(self._spread(offsets, value), axis)
            return Pointers(self, value.affine.expanded(axis), value.element, wide)
        return self.compute("expand_dims", (self.block(value),), ((axis,),))

    def spread(self, value: Any, shape: tuple[int, ...]) -> Any:
        """What no command has computed, over a shape that it fits."""
        if isinstance(value, Index):
            return Index(self, value.affine.broadcast(shape), value.dtype)
        if isinstance(value, Mask):
            return Mask(self, value.box.broadcast(shape))
        return Pointers(self, value.affine.broadcast(shape), value.element, value.offsets)

    def reshaped(self, value: Index, shape: tuple[int, ...]) -> Index:
        """An index under a shape that differs in axes of extent 1 alone."""
        affine = value.affine
        strides = [
            stride
            for stride, extent in zip(affine.strides, affine.shape, strict=True)
            if extent > 1
        ]
        spread = tuple(strides.pop(0) if extent > 1 else 0 for extent in shape)
        return Index(self, Affine(affine.base, spread, shape), value.dtype)

    def convert(self, value: Any, dtype: Any, bitcast: bool) -> Any:
        if isinstance(dtype, PointerType):
            change = pointers_to if isinstance(value, Pointers) else pointers_of
            return change(self, value, dtype.element_ty)
        if isinstance(value, Pointers):
            return integers_of(self, value, dtype)
        wanted = self.dtype(dtype)
        if isinstance(value, Index) and not bitcast and holds_index(wanted, value.affine):
            return Index(self, value.affine, wanted)
        block = self.block(value)
        if block.dtype is wanted:
            return block
        if bitcast:
            return self.compute("bitcast", (block,), (wanted,))
        return self.compute("cast", (block,), (wanted, None))

    def method(self, name: str, value: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return self.run.functions[name](value, *args, **kwargs)

    def number(self, value: Any) -> Any:
        """The one element of a value, for Python: waits until it is there. Of a pointer, bytes."""
        if isinstance(value, Pointers):
            return address_of(self, value)
        if value.type.num_elements != 1:
            found = f"a block of shape {value.shape} where Python needs one number"
            raise self.error(found, "a block of one element", "reduce it first, or use tl.where")
        return self.elements(value).reshape(())[()].item()

    def printable(self, value: Any) -> Any:
        """The elements of a value; in words what has none: addresses, floats of a run without."""
        if isinstance(value, Pointers) or (isinstance(value, Block) and value.node is None):
            return repr(value)
        return self.elements(value)

    def elements(self, value: Any) -> np.ndarray[Any, Any]:
        """All elements of a value, for Python: waits until they are there."""
        if isinstance(value, Index):
            return value.affine.array(value.dtype.storage)
        if isinstance(value, Mask):
            return value.box.array()
        block: Block = value
        if block.node is None:
            found = f"the value of a {block.type} in a run that has only times"
            fix = "run with data, or let only integers decide"
            raise self.error(found, "control by integers", fix)
        number = None if block.is_there else block.number
        if number is not None:
            self._await(self.issuer.task_of(number), block.type, block.node)
        found_value: np.ndarray[Any, Any] = np.asarray(evaluate(block.node))
        block.is_there = True
        if number is not None:
            note_wait(self)
        return found_value

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

    def dtype(self, source: Any) -> DType:
        return source if type(source) is DType else dtype_of(source, str(self))

    def block(self, value: Any, beside: Any = None, op: str = "add") -> Block:
        """Anything as an operand of a command; a number takes the dtype of what it meets."""
        if type(value) is Block:
            return value
        if isinstance(value, Index):
            affine, storage = value.affine, value.dtype.storage
            return self._made("arange", value.type, lambda: affine.array(storage))
        if isinstance(value, Mask):
            return self._made("arange", value.type, value.box.array)
        if isinstance(value, bool | int | float):
            return self.constant(value, constant_dtype(op, value, beside))
        found = f"{value!r} of type {type(value).__name__}"
        raise self.error(found, "a block, an index or a number", "pass one of these")

    def constant(self, value: Any, dtype: DType) -> Block:
        """A number as a part of the command that uses it."""
        key = (value or str(value), dtype, type(value))  # 0.0 and -0.0 are equal, and not the same
        block = self._constants.get(key)
        if block is None:
            array = np.asarray(value).astype(dtype.storage)
            block = Block(self, block_type(dtype, ()), constant_node(array), None)
            self._constants[key] = block
        return block

    def element(self, value: Any, dtype: DType) -> np.ndarray[Any, Any]:
        """A number as memory has it, in an array of its own."""
        return self.constant(value, dtype).node.value  # type: ignore[no-any-return, union-attr]

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

    # -- addresses -------------------------------------------------------------------------------

    def index_range(self, start: int, end: int) -> Index:
        """The integers from start to end."""
        return Index(self, Affine(start, (1,), (end - start,)), int32)

    def pointers(self, address: int, element: DType) -> Pointers:
        return Pointers(self, Affine(2 * address if element is int4 else address, (), ()), element)

    def _offset(self, op: str, left: Any, right: Any) -> Pointers:
        """Addresses plus a block of offsets that is computed."""
        if op == "add" and isinstance(right, Pointers):
            left, right = right, left
        if op not in ("add", "sub") or not isinstance(left, Pointers) or type(right) is not Block:
            found = f"{op} of {left!r} and {right!r}"
            raise self.error(found, "addresses plus or minus integers", "correct the addresses")
        offsets = right if op == "add" else self.unary("neg", right)
        if left.offsets is not None:
            offsets = self.binary("add", left.offsets, offsets)
        shape = left.affine.plus(Affine(0, (0,) * len(right.shape), right.shape))
        return Pointers(self, shape, left.element, offsets)

    def _spread(self, offsets: Value, pointers: Pointers) -> Any:
        if offsets.shape == pointers.shape:
            return offsets
        return self.compute("broadcast_to", (self.block(offsets),), (pointers.shape,))

    # -- arguments of the language's functions ---------------------------------------------------

    def place(self, axis: Any, values: tuple[int, ...], beyond: int) -> int:
        """An entry of a grid that has up to three axes."""
        if axis not in (0, 1, 2):
            expected = '0, 1 or 2, "pe", "cube" or "sip"'
            raise self.error(f"axis {axis!r} of the grid", expected, "correct the axis")
        return values[axis] if axis < len(values) else beyond

    def extents(self, shape: Any) -> tuple[int, ...]:
        """A shape that is written as a number, a list or a tuple."""
        parts = shape if isinstance(shape, list | tuple) else (shape,)
        for part in parts:
            if not isinstance(part, int) or part <= 0:
                raise self.error(f"the shape {shape!r}", "positive integers", "correct the shape")
        return tuple(map(int, parts))

    # -- words -----------------------------------------------------------------------------------

    def error(self, found: str, expected: str, fix: str) -> KernelError:
        """With the user's line and the program; the time joins them where the program ends."""
        where = f"{line_text(source_line())}, {self}"
        return KernelError(where, found, expected, fix)

    def room_error(self, found: str, expected: str, fix: str) -> TileRoomError:
        """Return an error as `error` does, about space that a PE does not have."""
        return TileRoomError(*self.error(found, expected, fix).args)
