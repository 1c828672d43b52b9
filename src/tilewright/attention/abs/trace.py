"""Records what a method of a flow does: each call becomes a node."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tilewright.attention.abs.author import author_line
from tilewright.attention.abs.tensor import Parameter, vTensor
from tilewright.attention.graph import (
    FORMAT,
    Branch,
    DType,
    FieldWrite,
    Node,
    Op,
    Output,
    Scope,
    Side,
    StateVar,
    StateWrite,
    ValueType,
)
from tilewright.attention.ops.layout import Concat, Slice
from tilewright.attention.ops.leaf import Constant, FieldRead, Input, ParameterRead
from tilewright.attention.ops.unary import Cast
from tilewright.errors import FieldError, FlowError, ForeignCallError, StateError, TerminalError

Number = bool | int | float


class Call(NamedTuple):
    """One op that was applied, by the ids of tensors."""

    op: object  # the op object of the author, or the definition of an infix form
    inputs: tuple[int, ...]
    output: int
    is_side_effect: bool = False  # a Save: it does not produce the field that it writes


Event = Node | FieldWrite | StateWrite | Output
"""What a method did: each in the order of its calls."""


@dataclass(eq=False)
class Trace:
    """What one method has done so far. Values belong to one trace and die with it."""

    flow: str
    method: str
    scope: Scope
    parameters: dict[Parameter, str] = field(default_factory=dict)
    tensors: list[vTensor] = field(default_factory=list)
    tensor_names: dict[str, int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    in_place_calls: list[Node] = field(default_factory=list)  # of op objects with ``in_place``
    field_writes: dict[str, FieldWrite] = field(default_factory=dict)  # by target
    overwritten: list[FieldWrite] = field(default_factory=list)
    state_writes: dict[str, StateWrite] = field(default_factory=dict)  # by target
    own_states: list[StateVar] = field(default_factory=list)
    output: Output | None = None
    _ids: dict[Node, int] = field(default_factory=dict)
    _reads: dict[str, Node] = field(default_factory=dict)
    _read_backs: dict[FieldWrite, Node] = field(default_factory=dict)

    def located(self, error: FlowError) -> FlowError:
        """The error with flow, method and the author's line."""
        return error.located(flow=self.flow, method=self.method, source=author_line())

    def node_of(self, op: Op, operand: object, *, like: DType = DType.FLOAT32) -> Node:
        """An operand of ``op`` as a node; numbers and parameters become leaves."""
        node = getattr(operand, "node", None)
        if isinstance(node, Node):
            if getattr(operand, "trace", None) is self:
                return node
            found = "a value of another method or another run of this one"
            expected = f"a value made in {self.method}"
        elif isinstance(operand, Parameter):
            return self.read_parameter(operand)
        elif isinstance(operand, Number):
            return self.constant(operand, like)
        else:
            found = f"a {type(operand).__module__}.{type(operand).__qualname__}"
            expected = "a value of the flow or a number"
        fix = "use values of this method; wrap learned constants in Parameter"
        raise self.located(ForeignCallError(op.name, found, expected, fix, op=op.name))

    @property
    def nodes(self) -> list[Node]:
        """Values in the order in which they were made."""
        return [event for event in self.events if isinstance(event, Node)]

    def apply(self, op: Op, *operands: object, by: object = None) -> Node:
        """Add a node. Numbers take the element type of the values beside them.

        ``by`` is the op object that was called, if there is one.
        """
        nodes = [getattr(item, "node", None) for item in operands]
        dtypes = [node.type.dtype for node in nodes if isinstance(node, Node)]
        integers = bool(dtypes) and all(dtype.is_integer for dtype in dtypes)
        like = DType.INT32 if integers else DType.FLOAT32
        return self.add(op, tuple(self.node_of(op, item, like=like) for item in operands), by)

    def add_input(self, name: str) -> Node:
        """What the model hands over: written by nobody, so without a line."""
        node = Node(Input(name), (), self.scope.variables[name])
        self.events.append(node)
        self._record(node, node.op)
        return node

    def add(self, op: Op, inputs: tuple[Node, ...], by: object = None) -> Node:
        try:
            result = op.result_type(tuple(node.type for node in inputs), self.scope)
        except FlowError as error:
            raise self.located(error) from None
        node = Node(op, inputs, result, author_line())
        self.events.append(node)
        self._record(node, op if by is None else by)
        return node

    def register(self, name: str, tensor: vTensor) -> None:
        """A named tensor that is there before the first op: q, o, fields."""
        tensor.tensor_id = len(self.tensors)
        self.tensors.append(tensor)
        self.tensor_names[name] = tensor.tensor_id

    def id_of(self, node: Node) -> int:
        return self._ids[node]

    def constant(self, value: Number, like: DType) -> Node:
        if isinstance(value, bool):
            return self.add(Constant(float(value), DType.BOOL), ())
        whole = isinstance(value, int) and like is DType.INT32
        return self.add(Constant(float(value), DType.INT32 if whole else DType.FLOAT32), ())

    def read_parameter(self, parameter: Parameter) -> Node:
        name = self.parameters.setdefault(parameter, f"param.{len(self.parameters)}")
        self._declare(name, parameter.value_type)
        if name not in self._reads:
            self._reads[name] = self.add(ParameterRead(name), ())
        return self._reads[name]

    def read_field(self, name: str) -> Node:
        """A field at the start of the step; on the cache side as this trace has written it."""
        reserved = name in self.scope.geometry.reserved_fields
        self._check_has_request(name)
        if self.scope.side is Side.CACHE and not reserved:
            return self._read_back(name)
        if name not in self._reads:
            self._reads[name] = self.add(FieldRead(name), ())
        return self._reads[name]

    def write_field(self, name: str, value: Node) -> None:
        self._check_has_request(name)
        if name in self.scope.geometry.reserved_fields:
            fix = "keys and values belong to the model; declare a field of your own"
            raise self.located(FieldError(f"field {name!r}", "a write", "no write to it", fix))
        wanted = self.scope.variables[name]
        if not isinstance(value.op, Constant):
            self._check_fits(FieldError, name, value)
        elif value.type.dtype.is_float is not wanted.dtype.is_float:
            value = self.add(Cast(wanted.dtype.computed), (value,))
        earlier = self.field_writes.pop(name, None)
        if earlier is not None and earlier not in self._read_backs:
            self.overwritten.append(earlier)
        self.field_writes[name] = FieldWrite(name, value, author_line())
        self.events.append(self.field_writes[name])

    def write_state(self, name: str, value: Node, by: object = None) -> None:
        """Save: what the next step reads. One write for each state and step."""
        if name in self.scope.geometry.reserved_fields:
            fix = "keys and values belong to the model; declare a field of your own"
            raise self.located(StateError(f"field {name!r}", "a Save", "no write to it", fix))
        if name in self.state_writes:
            found = f"a second Save, after the one at {self.state_writes[name].source}"
            fix = "combine the values, then Save once"
            raise self.located(StateError(f"state {name!r}", found, "one Save a step", fix))
        self._check_fits(StateError, name, value)
        slotted = self.scope.variables[name].format is FORMAT.SLOTTED
        if value.type.format is not (FORMAT.BATCHED if slotted else FORMAT.RAGGED):
            fix = "Load a field first; add a value per row to a value per page"
            found, expected = str(value.type), "RAGGED, a value per page"
            if slotted:
                expected, fix = "BATCHED, a value per row", "reduce over pages (dim=0) first"
            raise self.located(StateError(f"state {name!r}", found, expected, fix))
        write = StateWrite(name, value, author_line())
        self.state_writes[name] = write
        self.events.append(write)
        target = self.tensor_names[name]
        by = write if by is None else by
        self.calls.append(Call(by, (self.id_of(value),), target, is_side_effect=True))

    def declare_state(self, name: str, state: StateVar) -> None:
        """State that an op brings along, such as the last selection."""
        self.own_states.append(state)
        self.register(name, vTensor((0, *state.type.shape), state.type.dtype, None, FORMAT.PAGED))
        self._declare(name, state.type)

    def finish(self, branches: tuple[Branch, ...]) -> None:
        """The terminal of the indexer: what attention reads."""
        if self.output is not None:
            found = f"a second terminal, after the one at {self.output.source}"
            fix = "combine the selections with Union or Intersection, and end once"
            raise self.located(TerminalError("terminal", found, "exactly one", fix))
        self.output = Output(branches, author_line())
        self.events.append(self.output)

    def _declare(self, name: str, kind: ValueType) -> None:
        self.scope = replace(self.scope, variables={**self.scope.variables, name: kind})

    def _record(self, node: Node, op: object) -> None:
        name = getattr(node.op, "variable", None)
        if name in self.tensor_names:
            self._ids[node] = self.tensor_names[name]
            return
        self._ids[node] = len(self.tensors)
        shape = (0, *node.type.shape)
        self.tensors.append(
            vTensor(shape, node.type.dtype, None, node.type.format, self._ids[node])
        )
        inputs = tuple(self._ids[item] for item in node.inputs)
        self.calls.append(Call(op, inputs, self._ids[node]))

    def _read_back(self, name: str) -> Node:
        write = self.field_writes.get(name)
        if write is None:
            found = "a read before anything was written to it"
            fix = "write it first; each page is visited once, so nothing is left from before"
            raise self.located(FieldError(f"field {name!r}", found, "a write, then reads", fix))
        if write not in self._read_backs:
            wanted, value = self.scope.variables[name], write.value
            if isinstance(value.op, Constant):
                value = self._filled(value, wanted.shape)
            self._read_backs[write] = self.add(Cast(wanted.dtype), (value,))
        return self._read_backs[write]

    def _filled(self, value: Node, shape: tuple[int, ...]) -> Node:
        """Repeat a constant to the inner shape of the field that it fills."""
        for dim, size in enumerate(shape, 1):
            while value.type.shape[dim - 1] < size:
                value = self.add(Concat(dim), (value, value))
            if value.type.shape[dim - 1] > size:
                value = self.add(Slice(0, size, dim), (value,))
        return value

    def _check_has_request(self, name: str) -> None:
        slotted = self.scope.variables[name].format is FORMAT.SLOTTED
        if slotted and self.scope.side is Side.CACHE:
            found, expected = "a use in forward_cache", "use in forward_indexer"
            fix = "a page is completed for no request in particular; Load and Save it there"
            raise self.located(FieldError(f"request cache {name!r}", found, expected, fix))

    def _check_fits(self, error: type[FlowError], name: str, value: Node) -> None:
        wanted, found = self.scope.variables[name], value.type
        kinds = {dtype.computed for dtype in (wanted.dtype, found.dtype)}
        if found.shape == wanted.shape and len(kinds) == 1:
            return
        expected = f"inner shape {wanted.shape} of {wanted.dtype.computed}"
        fix = "reduce or reshape the value, Cast it, or change create_cache"
        raise self.located(error(f"field {name!r}", str(found), expected, fix))
