"""What a value of a flow cannot do: anything that would need its numbers."""

from typing import Any, Never

from tilewright.attention.abs.trace import Trace
from tilewright.errors import ForeignCallError

_RANK = "rank 3: reductions keep their axis, and operands broadcast"
_SPREAD = "broadcasting: an axis of size 1 meets any size without it"
REMEDIES = {
    "unsqueeze": f"no unsqueeze, but {_RANK}",
    "squeeze": f"no squeeze, but {_RANK}",
    "flatten": "reshape(-1, 1, rows * columns)",
    "t": "transpose(1, 2) or .T",
    "expand": _SPREAD,
    "expand_as": _SPREAD,
    "broadcast_to": _SPREAD,
    "repeat": _SPREAD,
    "values": "amax(dim) or amin(dim), which return the values alone",
    "indices": "argmax(dim) for rows and columns, topk() for pages",
    "std": "((x - x.mean(dim)) ** 2).mean(dim).sqrt()",
    "var": "((x - x.mean(dim)) ** 2).mean(dim)",
    "sort": "topk(), top_p() or threshold()",
    "prod": "log().sum(dim).exp() of positive values",
    "tolist": "ops: a flow is traced and has no numbers",
    "item": "ops: a flow is traced and has no numbers",
    "numpy": "ops: a flow is traced and has no numbers",
    "cpu": "nothing: a flow has no devices",
    "cuda": "nothing: a flow has no devices",
}
"""What to write instead of a method that torch's tensors have and values of a flow have not."""


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
        expected = REMEDIES.get(name, "a method or op of the library")
        if name.endswith("_"):
            expected = f"a new value: {name.rstrip('_')} without the underscore, and use its result"
        self._refuse(f"the attribute {name!r}", expected)

    def _refuse(self, found: str, expected: str) -> Never:
        fix = "see docs/ops.md for what flows can say; a flow is traced, it has no numbers"
        raise self.trace.located(ForeignCallError("a value of the flow", found, expected, fix))
