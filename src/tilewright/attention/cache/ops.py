"""Op objects of forward_cache: ``op(x, output, loc=loc, ctx=ctx)``."""

from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any

from tilewright.attention.abs.argument import FieldValue
from tilewright.attention.abs.context_base import CacheContext, ContextBase, PageLocation, ctx
from tilewright.attention.abs.op import (
    SHARED_BASES,
    Bases,
    Resized,
    op_classes,
    split_context,
    trace_of,
    vOp,
)
from tilewright.attention.abs.tensor import Parameter
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Operand, Value, lower
from tilewright.attention.graph import FORMAT, DType, Op, Side, Span
from tilewright.attention.ops import layout, leaf, linear, page_axis, selection
from tilewright.attention.ops.unary import Cast


def get_ctx() -> CacheContext:
    return ctx


class CacheOp(vOp):
    """Takes a field that gets the result, or None to obtain a value. ``loc`` is the place of the
    page; ops know it.
    """

    def profile(
        self,
        *args: Any,
        output: Any = None,
        loc: object = None,
        ctx: ContextBase | None = None,
        **kwargs: Any,
    ) -> Any:
        del loc
        args, ctx = split_context(args, ctx)
        if args and isinstance(args[-1], PageLocation):
            args = args[:-1]
        operands, output = self._split(self.bind(args, kwargs), output)
        trace = trace_of(type(self).__name__, (*operands, output), ctx)
        return self.store(trace, self.lower(trace, *operands), output)

    def lower(self, trace: Trace, *operands: Any) -> Value:
        if self.op is None:
            raise self._error("no definition", "an op of the library", "override lower")
        return lower(self.op, *operands, trace=trace, by=self)

    def store(self, trace: Trace, value: Value, output: Any) -> Value:
        if output is None:
            return value
        if not isinstance(output, FieldValue):
            found = f"an output of type {type(output).__name__}"
            raise self._error(found, "a cache field or None", 'pass cache["name"]')
        trace.write_field(output.field, value.node)
        return output

    def _split(self, args: tuple[Any, ...], output: Any) -> tuple[tuple[Any, ...], Any]:
        """Operands, and the field behind them if it was given by position."""
        count = len(args) if self.op is None else len(self.op.operands)
        variadic = self.op is not None and any(name.endswith("...") for name in self.op.operands)
        if output is None and not variadic and len(args) == count + 1:
            return args[:-1], args[-1]
        return args, output


class Fill(vOp):
    """Sets the whole field of the page to ``alpha``; of a state, its starting value."""

    def build(self, alpha: float = 0.0) -> None:
        if isinstance(alpha, bool) or not isinstance(alpha, Real):
            raise self._error(f"alpha={alpha!r}", "a number", "change alpha")

    def profile(self, x: Any, loc: object = None, ctx: object = None) -> FieldValue:  # type: ignore[override]
        del loc, ctx
        if not isinstance(x, FieldValue):
            found = f"an operand of type {type(x).__name__}"
            raise self._error(found, "a cache field", 'pass cache["name"]')
        x.trace.write_field(x.field, x.trace.constant(float(self.alpha), DType.FLOAT32))
        return x


class _SoftmaxOfRows(CacheOp):
    """A softmax along rows by default, as there is one page."""

    def build(self, dim: int = 1, scale: float = 1.0, span: str = Span.MIDDLE) -> Op | None:
        return super().build(dim, scale, span)


class _SumOfRows(CacheOp):
    """A cumulative sum along rows by default, as there is one page."""

    def build(self, dim: int = 1, reverse: bool = False, span: str = Span.MIDDLE) -> Op | None:
        return super().build(dim, reverse, span)


class _ResizedField(Resized, CacheOp):
    """``Reshape(-1, rows, columns)``: row-major, same number of elements. Takes fields too."""

    def lower(self, trace: Trace, *operands: Operand) -> Value:
        lifted = [
            lower(Cast(item.dtype.computed), item, trace=trace)
            if isinstance(item, Value) and item._format is FORMAT.PAGED
            else item
            for item in operands
        ]
        return super().lower(trace, *lifted)


class _Described(CacheOp):
    """``LearnedDescriptor(Wt, Wk, H, m, r)``: ``g[h, m, :] = (Wt[h]^T X) Wk[h]``, as [H*m, r]."""

    definition = linear.LearnedDescriptor

    def build(self, Wt: Parameter, Wk: Parameter, H: int, m: int, r: int) -> Op | None:  # noqa: N803  # names users know
        for name, weights in (("Wt", Wt), ("Wk", Wk)):
            if not isinstance(weights, Parameter):
                found = f"{name} of type {type(weights).__name__}"
                raise self._error(found, "a Parameter", "wrap it")
        return super().build(H, m, r)

    def lower(self, trace: Trace, *operands: Any) -> Value:
        return super().lower(trace, *operands, self.Wt, self.Wk)

    def _split(self, args: tuple[Any, ...], output: Any) -> tuple[tuple[Any, ...], Any]:
        return (args[:1], args[1]) if output is None and len(args) == 2 else (args, output)


_BASES: Bases = MappingProxyType(
    {
        **SHARED_BASES,
        page_axis.Softmax: _SoftmaxOfRows,
        page_axis.CumSum: _SumOfRows,
        layout.Reshape: _ResizedField,
        linear.LearnedDescriptor: _Described,
    }
)


def build_ops(module: str, table: Mapping[str, type[Op]]) -> dict[str, type[vOp]]:
    """Return the op object classes of ``module`` for a table of ops: what completes a page.

    Values of a page come as fields and arguments, and it selects no pages, so sources and
    selections have no op object here.
    """
    without = (*leaf.OPS, *selection.OPS)
    return op_classes(module, table, Side.CACHE, CacheOp, _BASES, without=without)
