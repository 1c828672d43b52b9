"""Cache fields as a flow sees them: ``cache["centroids"]``."""

import difflib
from collections.abc import Iterator, Mapping

from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value
from tilewright.attention.graph import Node, Side
from tilewright.attention.ops.leaf import Constant
from tilewright.errors import FieldError


class FieldValue(Value):
    """A field that can be read like any value, and written by cache-side ops, Fill and Save."""

    def __init__(self, trace: Trace, name: str) -> None:
        described = trace.tensors[trace.tensor_names[name]]
        super(Value, self).__init__(
            described.shape, described.dtype, None, described._format, described.tensor_id
        )
        self.trace = trace
        self.field = name

    @property
    def node(self) -> Node:  # type: ignore[override]  # read late: a write in between counts
        return self.trace.read_field(self.field)


class FieldMap(Mapping[str, FieldValue]):
    """The fields of a flow by name."""

    def __init__(self, trace: Trace, names: tuple[str, ...]) -> None:
        self._trace = trace
        self._names = names

    def __getitem__(self, name: str) -> FieldValue:
        if name in self._names:
            return FieldValue(self._trace, name)
        near = difflib.get_close_matches(str(name), self._names, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "declare it in create_cache"
        expected = f"one of {', '.join(self._names)}"
        raise self._trace.located(FieldError("cache", f"field {name!r}", expected, fix))

    def __setitem__(self, name: str, value: object) -> None:
        """On the cache side a write to the field; on the indexer side a Save for the next step."""
        target, trace = self[name], self._trace
        like = target.dtype.computed
        node = trace.node_of(Constant(0.0), value, like=like)
        if trace.scope.side is Side.CACHE:
            trace.write_field(name, node)
        else:
            trace.write_state(name, node)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        return self[name] if name in self._names else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
