"""`vOp`: ops as objects that a flow makes in its constructor and calls in its methods."""

import inspect
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar

from tilewright.attention.abs.author import author_line, make_op
from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import lower
from tilewright.attention.graph import FORMAT, Op, Side
from tilewright.attention.ops import binary, layout, linear, page_axis, selection, unary
from tilewright.attention.utils import Schedule, resolve_dtype
from tilewright.errors import OperandError, SpecError, meant

_STANDALONE = (
    selection.SelectionOp,
    selection.Union,
    selection.Intersection,
    page_axis.Normalize,
    page_axis.Conv1d,
    linear.FactorScore,
    linear.LearnedDescriptor,
)
_RECORDS = ("schedule", "output_format", "output_buffer")  # what tools of Vortex users read
_LIBRARY = "tilewright.attention."


class vOp:
    """Base of op objects. One object may be called any number of times.

    The parameters of ``build`` are those of the constructor and are attributes of the object: an
    attribute that is set later counts for the calls that follow. An op of your own overrides
    ``profile`` and calls library ops there.
    """

    definition: ClassVar[type[Op] | None] = None
    in_place: ClassVar[bool] = False
    """Whether a call with an unused result replaces its operand (ADR 0022)."""
    operand_aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Other names that a call may give operands by, each with the operand's own name."""
    schedule: Schedule = Schedule.W
    output_format: FORMAT | None = None
    output_buffer: vTensor | None = None
    op: Op | None = None
    _settings: inspect.BoundArguments

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__init__ is vOp.__init__:
            cls.__signature__ = _constructor(cls)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        signature = _constructor(type(self))
        try:
            settings = signature.bind(*args, **kwargs)
        except TypeError as error:
            expected = f"{type(self).__name__}({_usage(signature)})"
            raise self._error(str(error), expected, "leave out what it does not take") from None
        self._configure(settings)

    def build(self, *args: Any, **kwargs: Any) -> Op | None:
        """Return the definition that the constructor's arguments stand for, checked."""
        return None if self.definition is None else make_op(self.definition, *args, **kwargs)

    def _configure(self, settings: inspect.BoundArguments) -> None:
        op = self.build(*settings.args, **settings.kwargs)
        vars(self).update(_settings=settings, op=op, schedule=schedule_of(op))

    def __setattr__(self, name: str, value: Any) -> None:
        settings = self.__dict__.get("_settings")
        names = () if settings is None else tuple(settings.signature.parameters)
        if settings is not None and name in names:
            changed = {**settings.arguments, name: value}
            self._configure(inspect.BoundArguments(settings.signature, changed))
            return
        is_open = settings is None or name.startswith("_") or name in _RECORDS
        if not is_open and type(self).__module__.startswith(_LIBRARY):
            fix = meant(name, names, "keep your own values on the flow")
            expected = f"one of {', '.join(names)}" if names else "no attribute: it takes none"
            raise self._error(f"the attribute {name!r}", expected, fix)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("_settings")
        if settings is None or name not in settings.signature.parameters:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return settings.arguments.get(name, settings.signature.parameters[name].default)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.profile(*args, **kwargs)

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        """Trace one call."""
        if self.op is None:
            fix = "override profile, and call library ops there"
            raise OperandError(type(self).__name__, "no definition", "an op of the library", fix)
        args, ctx = split_context(args, ctx)
        operands = self.bind(args, kwargs)
        trace = trace_of(type(self).__name__, operands, ctx)
        value = lower(self.op, *operands, trace=trace, by=self)
        if self.in_place:
            trace.in_place_calls.append(value.node)
        return value

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the operands in order, given by position or by name; empties ``kwargs``."""
        names = () if self.op is None else self.op.operands
        for alias, name in self.operand_aliases.items():
            if alias in kwargs and name not in kwargs:
                kwargs[name] = kwargs.pop(alias)
        rest = [kwargs.pop(name) for name in names[len(args) :] if name in kwargs]
        if kwargs:
            found, expected = f"arguments {sorted(kwargs)}", f"operands {', '.join(names)} and ctx"
            raise self._error(found, expected, "leave the others out")
        return (*args, *rest)

    def _error(self, found: str, expected: str, fix: str) -> OperandError:
        name, line = type(self).__name__, author_line()
        return OperandError(f"{line}, {name}", found, expected, fix, source=line, op=name)

    def __repr__(self) -> str:
        return repr(self.op) if self.op is not None else f"{type(self).__name__}()"


def schedule_of(op: Op | None) -> Schedule:
    """S for what Vortex gives a kernel of its own, else W. GeMM with a Parameter is S there too,
    which is known at the call only.
    """
    over_pages = op is not None and op.attributes().get("dim") == 0
    return Schedule.S if over_pages or isinstance(op, _STANDALONE) else Schedule.W


def split_context(
    args: tuple[Any, ...], ctx: ContextBase | None
) -> tuple[tuple[Any, ...], ContextBase | None]:
    """Return the operands and the context, which may be the last argument by position."""
    if ctx is None and args and isinstance(args[-1], ContextBase):
        return args[:-1], args[-1]
    return args, ctx


def trace_of(name: str, operands: tuple[Any, ...], ctx: ContextBase | None) -> Trace:
    """The trace that a call belongs to: that of its first value, or of its context."""
    for item in operands:
        trace = getattr(item, "trace", None) if isinstance(item, vTensor) else None
        if isinstance(trace, Trace):
            return trace
    if ctx is not None and ctx.trace is not None:
        return ctx.trace
    fix = "call ops in forward_cache and forward_indexer, with their values and ctx=ctx"
    raise OperandError(name, "a call outside a trace", "a value of a flow", fix, op=name)


def _usage(signature: inspect.Signature) -> str:
    """Return the parameters of a constructor without their types."""
    bare = [item.replace(annotation=item.empty) for item in signature.parameters.values()]
    return ", ".join(map(str, bare))


def _constructor(kind: type[vOp]) -> inspect.Signature:
    """Return what the constructor of an op object class takes."""
    if kind.build is not vOp.build:
        own = inspect.signature(kind.build)
        return own.replace(parameters=list(own.parameters.values())[1:])  # without self
    return inspect.Signature() if kind.definition is None else inspect.signature(kind.definition)


Bases = Mapping[type[Op], type[vOp]]


def op_classes(
    module: str,
    table: Mapping[str, type[Op]],
    side: Side,
    base: type[vOp],
    bases: Bases,
    *,
    without: Collection[type[Op]],
) -> dict[str, type[vOp]]:
    """Return an op object class for each op of a side by name, but for those in ``without``.

    A class derives from ``base`` and the base of its op in ``bases``, and belongs to ``module``.
    """
    return {
        name: _op_class(module, definition, base, bases.get(definition, base))
        for name, definition in sorted(table.items())
        if side in definition.sides and definition not in without
    }


def _op_class(module: str, definition: type[Op], base: type[vOp], own: type[vOp]) -> type[vOp]:
    text = own.__doc__ if own.definition is definition else definition.__doc__
    members = {"definition": definition, "__doc__": text, "__module__": module}
    return type(definition.__name__, (own,) if issubclass(own, base) else (own, base), members)


class _Unscaled(vOp):
    """An op that takes ``alpha`` and ``beta`` as Vortex's does, and like it has no use for them.

    Only 1.0 is accepted: a factor without effect would be silently wrong for its author.
    """

    def build(self, alpha: Any = 1.0, beta: Any = 1.0) -> Op | None:
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, bool) or not isinstance(value, Real) or value != 1:
                name_of_op = type(self).__name__
                expected = f"nothing: {name_of_op} has no factors, in Vortex it ignores them"
                fix = f"write {name_of_op}(), and scale an operand with Add_Mul(beta=...)"
                raise self._error(f"{name}={value!r}", expected, fix)
        return super().build()


class _ToDtype(vOp):
    """An op that takes an element type by any name that users know."""

    def build(self, dtype: object) -> Op:
        try:
            return make_op(unary.Cast, resolve_dtype(dtype))
        except SpecError as error:
            raise self._error(error.found, error.expected, error.fix) from None


class _OverAxes(vOp):
    """An op that takes one axis or several."""

    def build(self, dim: int | Iterable[int] = (1, 2)) -> Op | None:
        return super().build(tuple(dim) if isinstance(dim, Iterable) else (dim,))


class Resized(vOp):
    """``Reshape(-1, rows, columns)``: row-major, same number of elements; RAGGED or BATCHED."""

    definition = layout.Reshape

    def build(self, batch_dim: int, x2: int, y2: int) -> Op | None:
        if batch_dim != -1:
            raise self._error(f"batch_dim={batch_dim!r}", "-1", "the page axis is kept")
        return super().build(x2, y2)


SHARED_BASES: Bases = MappingProxyType(
    {
        binary.Multiply: _Unscaled,
        binary.Maximum: _Unscaled,
        binary.Minimum: _Unscaled,
        unary.Cast: _ToDtype,
        linear.Kron: _OverAxes,
        layout.Reshape: Resized,
    }
)
"""Bases of ops on both sides."""
