"""What a value of a flow cannot do: anything that would need its numbers."""

from typing import Any, Never

from tilewright.attention.abs.trace import Trace
from tilewright.errors import ForeignCallError

__all__ = ("NotNumbers",)


class NotNumbers:
    """Refuses torch, NumPy and decisions of Python by name, with the author's line."""

    trace: Trace

    def __bool__(self) -> bool:
        self._refuse("a decision of Python on it (if, while, and, or)", "Select or a mask")

    def __float__(self) -> float:
        self._refuse("a conversion to a number", "ops on the value")

    def __int__(self) -> int:
        self._refuse("a conversion to a number", "ops on the value")

    def __iter__(self) -> Never:
        self._refuse("a loop over it", "reductions and slices")

    def __array__(self, *_args: object, **_kwargs: object) -> Never:
        self._refuse("a conversion to a NumPy array", "library ops on the value")

    def __array_ufunc__(self, ufunc: Any, *_args: object, **_kwargs: object) -> Never:
        self._refuse(f"NumPy's {ufunc.__name__}", "library ops on the value")

    def __array_function__(self, function: Any, *_args: object) -> Never:
        self._refuse(f"NumPy's {function.__name__}", "library ops on the value")

    @classmethod
    def __torch_function__(
        cls, function: Any, _types: object, args: tuple[Any, ...] = (), _kwargs: object = None
    ) -> Never:
        flat = [
            part for item in args for part in (item if isinstance(item, list | tuple) else [item])
        ]
        value = next(item for item in flat if isinstance(item, NotNumbers))
        name = getattr(function, "__name__", repr(function))
        value._refuse(f"torch's {name}", "library ops on the value")

    def __getattr__(self, name: str) -> Never:
        if name.startswith("_") or name in ("trace", "node"):
            raise AttributeError(name)
        self._refuse(f"the attribute {name!r}", "a method or op of the library")

    def _refuse(self, found: str, expected: str) -> Never:
        fix = "see docs/ops.md for what flows can say; a flow is traced, it has no numbers"
        raise self.trace.located(ForeignCallError("a value of the flow", found, expected, fix))
