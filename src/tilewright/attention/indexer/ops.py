"""Op objects of forward_indexer: ``op(x, ctx=ctx)``."""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tilewright.attention.abs.argument import FieldValue
from tilewright.attention.abs.context_base import ContextBase, IndexerContext
from tilewright.attention.abs.op import SHARED_BASES, Bases, op_classes, trace_of, vOp
from tilewright.attention.abs.tensor import Parameter
from tilewright.attention.abs.value import Value, lower
from tilewright.attention.graph import FORMAT, DType, Op, Side, Span
from tilewright.attention.indexer.select import SELECTION_BASES
from tilewright.attention.ops import leaf, linear, page_axis, selection
from tilewright.attention.ops.unary import Cast
from tilewright.attention.utils import resolve_dtype

_EMPTY = IndexerContext()


def get_ctx() -> IndexerContext:
    """A context without a trace, for tools that read its fields."""
    return _EMPTY


class Load(vOp):
    """A field as a value [S, r, c]. Of a state: as the last step left it, wherever Save stands.

    The value of a floating-point field has the context's ``vortex_dtype``. ``output_format`` and
    ``output_buffer`` describe the result of the latest call.
    """

    _impl_map = MappingProxyType({FORMAT.PAGED: FORMAT.RAGGED})

    def profile(self, x: Any, ctx: ContextBase | None = None) -> Value:  # type: ignore[override]
        trace = trace_of("Load", (x,), ctx)
        if not isinstance(x, FieldValue):
            error = self._error(f"a {type(x).__name__}", "a cache field", 'pass cache["name"]')
            raise trace.located(error)
        value = lower(Cast(x.dtype.computed), x, trace=trace, by=self)
        self.output_format, self.output_buffer = value._format, value
        return value


class Save(vOp):
    """Keeps x [S, r, c] RAGGED in a field of the same inner shape, for the next step.

    A request cache (SLOTTED) takes x [1, r, c] BATCHED. ``output_format`` is the format of the
    field of the latest call.
    """

    _impl_map = MappingProxyType({FORMAT.RAGGED: FORMAT.PAGED})

    def profile(self, x: Any, o: Any, ctx: ContextBase | None = None) -> FieldValue:  # type: ignore[override]
        trace = trace_of("Save", (x, o), ctx)
        if not isinstance(o, FieldValue):
            error = self._error(f"a {type(o).__name__}", "a cache field", 'pass cache["name"]')
            raise trace.located(error)
        if not isinstance(x, Value):
            found = f"operand x of type {type(x).__name__}"
            raise trace.located(self._error(found, "a value of the flow", "save a value per page"))
        trace.write_state(o.field, x.node, by=self)
        self.output_format = o._format
        return o


class GeMV(vOp):
    """Dot product: x [1, 1, D], y [S, 1, D] -> [S, 1, 1]. `GeMM` does all that and more."""

    definition = linear.GeMM

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        operands = self.bind(args, kwargs)
        for name, operand in zip("xy", operands, strict=False):
            if isinstance(operand, Value) and operand.shape[1] != 1:
                fix = "use GeMM, which takes any number of rows"
                raise operand.trace.located(
                    self._error(f"operand {name} {operand.node.type}", "one row", fix)
                )
        return super().profile(*operands, ctx=ctx)


class _OverPages(vOp):
    """An op that Vortex gives a ``dim``, which can only be 0."""

    def _check_dim(self, dim: object, fix: str) -> None:
        if isinstance(dim, bool) or dim != 0:
            raise self._error(f"dim={dim!r}", "dim=0", fix)


class _SoftmaxOverPages(_OverPages):
    """``exp(scale * x - max) / sum`` over the pages of ``span``; others pass through. RAGGED.

    ``dim`` is 0, as in Vortex; ``x.softmax(dim)`` goes along rows or columns.
    """

    definition = page_axis.Softmax
    in_place = True

    def build(self, dim: int = 0, scale: float = 1.0, span: str = Span.MIDDLE) -> Op | None:
        self._check_dim(dim, f"write x.softmax({dim!r}) for rows or columns")
        return super().build(0, scale, span)


class _NormalizedOverPages(_OverPages):
    """An op that replaces its operand, and has a ``span``."""

    in_place = True

    def build(self, dim: int = 0, span: str = Span.MIDDLE) -> Op | None:
        self._check_dim(dim, "divide by an L2Norm for other axes")
        return super().build(span)


class _ConvolvedPages(_OverPages):
    """``Conv1d(weight)`` with nested lists [K, r, c]: ``out[p] = sum_k weight[k] * x[p - k]``.

    Causal, over the middle pages; weights are rounded to ``dtype`` once.
    """

    definition = page_axis.Conv1d

    def build(
        self,
        weight: list[Any],
        dim: int = 0,
        dtype: object = DType.BFLOAT16,
        device: object = None,
        span: str = Span.MIDDLE,
    ) -> Op | None:
        del device
        self._check_dim(dim, "Conv1d runs over pages")
        rounded = _round_to(resolve_dtype(dtype))
        try:
            taps = tuple(tuple(tuple(rounded(x) for x in row) for row in tap) for tap in weight)
        except (TypeError, struct.error):
            fix = "write [[[w0]], [[w1]]] for scores [S, 1, 1]"
            raise self._error(repr(weight), "nested lists [K, r, c]", fix) from None
        return super().build(taps, span)


class _ScoredByFactors(vOp):
    """``FactorScore(Wq, H, m, r)(q, descriptors)``: ``sum_h max_m <Wq[h]^T q_h, g[h, m]>``."""

    definition = linear.FactorScore

    def build(self, Wq: Parameter, H: int, m: int, r: int) -> Op | None:  # noqa: N803  # names users know
        if not isinstance(Wq, Parameter):
            raise self._error(f"Wq of type {type(Wq).__name__}", "a Parameter", "wrap it")
        return super().build(H, m, r)

    def profile(self, q: Any, descriptors: Any, ctx: ContextBase | None = None) -> Any:  # type: ignore[override]
        return super().profile(q, self.Wq, descriptors, ctx=ctx)


def _round_to(dtype: DType) -> Callable[[float], float]:
    if dtype is DType.BFLOAT16:
        return _bfloat16
    if dtype is DType.FLOAT16:
        return lambda x: float(struct.unpack("<e", struct.pack("<e", x))[0])
    return lambda x: float(struct.unpack("<f", struct.pack("<f", x))[0])


def _bfloat16(x: float) -> float:
    """To the nearest bfloat16, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    bits += 0x7FFF + ((bits >> 16) & 1)
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0])


_BASES: Bases = MappingProxyType(
    {
        **SHARED_BASES,
        **SELECTION_BASES,
        page_axis.Softmax: _SoftmaxOverPages,
        page_axis.Normalize: _NormalizedOverPages,
        page_axis.Conv1d: _ConvolvedPages,
        linear.FactorScore: _ScoredByFactors,
    }
)


def build_ops(module: str, table: Mapping[str, type[Op]]) -> dict[str, type[vOp]]:
    """Return the op object classes of ``module`` for a table of ops: what chooses pages.

    Sources come as arguments and fields, and some selections have objects of other names.
    """
    without = (
        *leaf.OPS,
        selection.ApproxTopK,
        selection.SelectedTokens,
        selection.Threshold,
        selection.TopP,
    )
    return op_classes(module, table, Side.INDEXER, vOp, _BASES, without=without)
