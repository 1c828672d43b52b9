"""`vOp`: ops as objects that a flow makes in its constructor and calls in its methods."""

from typing import Any, ClassVar

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.make import make_op
from tilewright.attention.abs.source import author_line
from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value, lower
from tilewright.attention.graph import Op
from tilewright.attention.ops import linear, page_axis, selection
from tilewright.attention.utils import Schedule
from tilewright.errors import OperandError

__all__ = ("op_class", "schedule_of", "trace_of", "vOp")

_STANDALONE = (
    selection.SelectionOp,
    selection.Union,
    selection.Intersection,
    page_axis.Normalize,
    page_axis.Conv1d,
    linear.FactorScore,
    linear.LearnedDescriptor,
)


class vOp:
    """Base of op objects. An object holds no result, so it may be called any number of times.

    An op of your own overrides ``profile`` and calls library ops there.
    """

    definition: ClassVar[type[Op] | None] = None
    schedule: Schedule = Schedule.W

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.op = None if self.definition is None else make_op(self.definition, *args, **kwargs)
        self.schedule = schedule_of(self.op)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.profile(*args, **kwargs)

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        """Trace one call."""
        if self.op is None:
            fix = "override profile, and call library ops there"
            raise OperandError(self._prefix(), "no definition", "an op of the library", fix)
        operands = self.bind(args, kwargs)
        return lower(self.op, *operands, trace=trace_of(type(self).__name__, operands, ctx))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Operands in order, given by position or by name."""
        names = () if self.op is None else self.op.operands
        rest = [kwargs.pop(name) for name in names[len(args) :] if name in kwargs]
        if kwargs:
            found, expected = f"arguments {sorted(kwargs)}", f"operands {', '.join(names)} and ctx"
            raise self._error(found, expected, "leave the others out")
        return (*args, *rest)

    def _prefix(self) -> str:
        return type(self).__name__

    def _error(self, found: str, expected: str, fix: str) -> OperandError:
        name, line = type(self).__name__, author_line()
        return OperandError(f"{line}, {name}", found, expected, fix, source=line, op=name)

    def __repr__(self) -> str:
        return repr(self.op) if self.op is not None else f"{type(self).__name__}()"


def op_class(module: str, definition: type[Op], base: type[vOp] = vOp) -> type[vOp]:
    """An op object class for a definition: same name, same attributes, same text."""
    members = {"definition": definition, "__doc__": definition.__doc__, "__module__": module}
    return type(definition.__name__, (base,), members)


def schedule_of(op: Op | None) -> Schedule:
    """S for what Vortex gives a kernel of its own, else W. GeMM with a Parameter is S there too,
    which is known at the call only.
    """
    over_pages = op is not None and op.attributes().get("dim") == 0
    return Schedule.S if over_pages or isinstance(op, _STANDALONE) else Schedule.W


def trace_of(name: str, operands: tuple[Any, ...], ctx: ContextBase | None) -> Trace:
    """The trace that a call belongs to: that of its first value, or of its context."""
    for item in operands:
        if isinstance(item, Value):
            return item.trace
        if isinstance(item, vTensor) and isinstance(getattr(item, "trace", None), Trace):
            return item.trace  # type: ignore[attr-defined,no-any-return]
    if ctx is not None and ctx.trace is not None:
        return ctx.trace
    fix = "call ops in forward_cache and forward_indexer, with their values and ctx=ctx"
    raise OperandError(name, "a call outside a trace", "a value of a flow", fix, op=name)
