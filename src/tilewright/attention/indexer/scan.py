"""Ops along the page axis."""

import struct
from collections.abc import Callable
from typing import Any

from tilewright.attention.abs.op import op_class, vOp
from tilewright.attention.graph import DType, Op, Span
from tilewright.attention.ops import page_axis
from tilewright.attention.utils import resolve_dtype

__all__ = ("AcrossHeads", "Conv1d", "CumSum", "Normalize", "PoolPages", "ShiftPages", "Softmax")

CumSum = op_class(__name__, page_axis.CumSum)
PoolPages = op_class(__name__, page_axis.PoolPages)
ShiftPages = op_class(__name__, page_axis.ShiftPages)
AcrossHeads = op_class(__name__, page_axis.AcrossHeads)


class _OverPages(vOp):
    """An op that Vortex gives a ``dim``, which can only be 0."""

    def _check_dim(self, dim: object, fix: str) -> None:
        if isinstance(dim, bool) or dim != 0:
            raise self._error(f"dim={dim!r}", "dim=0", fix)


class Softmax(_OverPages):
    """``exp(scale * x - max) / sum`` over the pages of ``span``; others pass through. RAGGED.

    ``dim`` is 0, as in Vortex; ``x.softmax(dim)`` goes along rows or columns.
    """

    definition = page_axis.Softmax
    in_place = True

    def build(self, dim: int = 0, scale: float = 1.0, span: str = Span.MIDDLE) -> Op | None:
        self._check_dim(dim, f"write x.softmax({dim!r}) for rows or columns")
        return super().build(0, scale, span)


class Normalize(_OverPages):
    __doc__ = page_axis.Normalize.__doc__

    definition = page_axis.Normalize
    in_place = True

    def build(self, dim: int = 0, span: str = Span.MIDDLE) -> Op | None:
        self._check_dim(dim, "divide by an L2Norm for other axes")
        return super().build(span)


class Conv1d(_OverPages):
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
