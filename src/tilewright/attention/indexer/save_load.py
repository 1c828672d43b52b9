"""State across decode steps: Load sees the last step, Save sets what the next one sees."""

from typing import Any

from tilewright.attention.abs.field import FieldValue
from tilewright.attention.abs.op import trace_of, vOp
from tilewright.attention.abs.value import Value, lower
from tilewright.attention.ops.unary import Cast

__all__ = ("Load", "Save")


class Load(vOp):
    """A field as a value [S, r, c]. Of a state: as the last step left it, wherever Save stands."""

    def profile(self, x: Any, *, ctx: Any = None) -> Value:  # type: ignore[override]
        trace = trace_of("Load", (x,), ctx)
        if not isinstance(x, FieldValue):
            error = self._error(f"a {type(x).__name__}", "a cache field", 'pass cache["name"]')
            raise trace.located(error)
        return lower(Cast(x.dtype.computed), x, trace=trace)


class Save(vOp):
    """Keeps x [S, r, c] RAGGED in a field of the same inner shape, for the next step."""

    def profile(self, x: Any, o: Any, *, ctx: Any = None) -> FieldValue:  # type: ignore[override]
        trace = trace_of("Save", (x, o), ctx)
        if not isinstance(o, FieldValue):
            error = self._error(f"a {type(o).__name__}", "a cache field", 'pass cache["name"]')
            raise trace.located(error)
        if not isinstance(x, Value):
            found = f"operand x of type {type(x).__name__}"
            raise trace.located(self._error(found, "a value of the flow", "save a value per page"))
        trace.write_state(o.field, x.node)
        return o
