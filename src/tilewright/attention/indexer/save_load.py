"""State across decode steps: Load sees the last step, Save sets what the next one sees."""

from types import MappingProxyType
from typing import Any

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.field import FieldValue
from tilewright.attention.abs.op import trace_of, vOp
from tilewright.attention.abs.value import Value, lower
from tilewright.attention.graph import FORMAT
from tilewright.attention.ops.unary import Cast

__all__ = ("Load", "Save")


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
