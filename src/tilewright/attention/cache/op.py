"""How ops are called on the cache side: ``op(x, output, loc=loc, ctx=ctx)``."""

from dataclasses import dataclass
from typing import Any

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.field import FieldValue
from tilewright.attention.abs.op import op_class, split_context, trace_of, vOp
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value, lower
from tilewright.attention.graph import Op

__all__ = ("CacheOp", "PageLocation", "cache_op")


@dataclass(frozen=True, slots=True)
class PageLocation:
    """``loc``: the page that ``forward_cache`` is called for. Ops know it; flows pass it on."""


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
        bound = self.bind(args, kwargs)
        operands, output = self._split(bound, output)
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

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return args if not kwargs else super().bind(args, kwargs)

    def _split(self, args: tuple[Any, ...], output: Any) -> tuple[tuple[Any, ...], Any]:
        """Operands, and the field behind them if it was given by position."""
        count = len(args) if self.op is None else len(self.op.operands)
        variadic = self.op is not None and any(name.endswith("...") for name in self.op.operands)
        if output is None and not variadic and len(args) == count + 1:
            return args[:-1], args[-1]
        return args, output


def cache_op(module: str, definition: type[Op], base: type[CacheOp] = CacheOp) -> type[CacheOp]:
    return op_class(module, definition, base)  # type: ignore[return-value]  # a subclass of base
