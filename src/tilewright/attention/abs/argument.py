"""Arguments of a flow's methods: ``cache`` with its fields, ``o`` for the selection."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Operand, Value
from tilewright.attention.graph import (
    FORMAT,
    Branch,
    DType,
    Estimate,
    EstimateOver,
    Leading,
    Node,
    Side,
)
from tilewright.attention.graph.graph import part_types
from tilewright.attention.ops.leaf import Constant
from tilewright.errors import FieldError, FlowError, OperandError, TerminalError, meant


class FieldValue(Value):
    """A field that can be read like any value, and written by cache-side ops, Fill and Save."""

    def __init__(self, trace: Trace, name: str) -> None:
        described = trace.tensors[trace.tensor_names[name]]
        super(Value, self).__init__(
            described.shape, described.dtype, None, described._format, described.tensor_id
        )
        self.trace = trace
        self.field = name

    @property
    def node(self) -> Node:  # type: ignore[override]  # read late: a write in between counts
        return self.trace.read_field(self.field)


class FieldMap(Mapping[str, FieldValue]):
    """The fields of a flow by name."""

    def __init__(self, trace: Trace, names: tuple[str, ...]) -> None:
        self._trace = trace
        self._names = names

    def __getitem__(self, name: str) -> FieldValue:
        if name in self._names:
            return FieldValue(self._trace, name)
        fix = meant(name, self._names, "declare it in create_cache")
        expected = f"one of {', '.join(self._names)}"
        raise self._trace.located(FieldError("cache", f"field {name!r}", expected, fix))

    def __setitem__(self, name: str, value: object) -> None:
        """On the cache side a write to the field; on the indexer side a Save for the next step."""
        target, trace = self[name], self._trace
        like = target.dtype.computed
        node = trace.node_of(Constant(0.0), value, like=like)
        if trace.scope.side is Side.CACHE:
            trace.write_field(name, node)
        else:
            trace.write_state(name, node)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        return self[name] if name in self._names else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class BranchSpec(NamedTuple):
    """One of several attentions whose results are added.

    Exact over ``selection`` (None: no page), estimated by ``logits`` [S, r, H] and ``values``
    [S, r, value width] over the pages that ``over`` names, times ``gate`` [1, H, 1] or [1, 1, 1].
    """

    selection: Value | None = None
    gate: Value | None = None
    logits: Value | None = None
    values: Value | None = None
    over: EstimateOver = EstimateOver.UNSELECTED


class OutputSlot(vTensor):
    """Takes the result of a flow, exactly once."""

    def __init__(self, trace: Trace) -> None:
        super().__init__((0, 1, 1), DType.INT32, None, FORMAT.RAGGED, -1)
        self.trace = trace

    def select(self, selection: Operand) -> None:
        """Attention reads the selected pages, and the reserved ones."""
        self.combine([BranchSpec(selection)])

    def estimate(
        self, selection: Operand, logits: Operand, values: Operand, over: str = "unselected"
    ) -> None:
        """Attention reads the selected pages; the others enter by their estimates."""
        kind = EstimateOver(over)
        self.combine([BranchSpec(selection, logits=logits, values=values, over=kind)])

    def combine(self, branches: Iterable[BranchSpec]) -> None:
        """The sum of several attentions, each times its gate."""
        specs = tuple(branches)
        try:
            if not specs:
                raise TerminalError("terminal", "no branch", "at least one", "name a branch")
            made = tuple(self._branch(spec) for spec in specs)
        except FlowError as error:
            raise self.trace.located(error) from None
        self.trace.finish(made)

    def _branch(self, spec: BranchSpec) -> Branch:
        selection = self._part("selection", spec.selection)
        gate = self._part("gate", spec.gate)
        logits, values = self._node("logits", spec.logits), self._node("values", spec.values)
        if logits is None or values is None:
            if logits is not values:
                fix = "give both: how much an entry weighs, and the value that it stands for"
                raise TerminalError("terminal", "one of logits and values", "both or none", fix)
            if selection is None:
                found, expected = "a branch of nothing", "something to attend to"
                fix = "give the branch a selection, an estimate, or both"
                raise TerminalError("terminal", found, expected, fix)
            return Branch(selection, gate)
        entries = logits.type.shape[0]
        self._part("logits", spec.logits, entries)
        self._part("values", spec.values, entries)
        over = spec.over if selection is not None else EstimateOver.ALL
        return Branch(selection, gate, Estimate(logits, values, over))

    def _part(self, operand: str, value: object, entries: int = 0) -> Node | None:
        """Return the node of a part of a branch, whose type must fit."""
        node = self._node(operand, value)
        if node is None:
            return None
        found = node.type
        dtype, shapes = part_types(self.trace.scope.geometry, entries)[operand]
        leading = Leading.ONE if operand == "gate" else Leading.PAGES
        if found.dtype.computed is dtype and found.shape in shapes and found.leading is leading:
            return node
        forms = " or ".join(f"[{leading}, {rows}, {columns}]" for rows, columns in shapes)
        fix = "select pages first" if operand == "selection" else "see Estimate and Branch"
        where = f"terminal operand {operand}"
        raise OperandError(where, str(found), f"{dtype} {forms}", fix, operand=operand)

    def _node(self, operand: str, value: object) -> Node | None:
        if value is None:
            return None
        if not isinstance(value, Value) or value.trace is not self.trace:
            found = f"a {type(value).__name__}" if not isinstance(value, Value) else "an old value"
            fix = "hand over what the ops of this method returned"
            raise OperandError("terminal", found, "a value of this method", fix, operand=operand)
        return value.node
