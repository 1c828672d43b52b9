"""State of flows: values per request, layer, KV head and logical block, never shared."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.errors import PagingError

__all__ = ("StateField", "StateStore")

Array: TypeAlias = Any  # of the namespace that the store was built with
Key: TypeAlias = tuple[str, int, str]  # request, layer, field


@dataclass(frozen=True, slots=True)
class StateField:
    """A field that a flow saves into. New blocks start at ``initial``."""

    name: str
    inner: tuple[int, int]
    initial: float = 0.0


class StateStore:
    """Private arrays ``[kv_heads, blocks, r, c]`` of each request, layer and field.

    They are keyed by the request and the logical block, so a prefix hit starts at the initial
    value as a cold start does, and no other request can read or write them. They go with the
    request. ``dtype`` is the dtype of fields, an object with ``itemsize``.
    """

    def __init__(
        self, fields: Iterable[StateField], *, namespace: Any, dtype: Any, num_kv_heads: int
    ) -> None:
        self._fields = {field.name: field for field in fields}
        self._xp = namespace
        self._dtype = dtype
        self._num_kv_heads = num_kv_heads
        self._values: dict[Key, Array] = {}

    @property
    def fields(self) -> Mapping[str, StateField]:
        return self._fields

    @property
    def num_bytes(self) -> int:
        elements: int = sum(math.prod(values.shape) for values in self._values.values())
        item_bytes: int = self._dtype.itemsize
        return elements * item_bytes

    def read(self, request: str, layer: int, name: str, num_blocks: int) -> Array:
        """Values of the first blocks; those that were never saved are at the initial value."""
        field = self._fields[name]
        held = self._values.get((request, layer, name))
        missing = num_blocks - (0 if held is None else held.shape[1])
        if missing <= 0 and held is not None:
            return held[:, :num_blocks]
        shape = (self._num_kv_heads, missing, *field.inner)
        fresh = self._xp.full(shape, field.initial, dtype=self._xp.float32)
        fresh = self._xp.astype(fresh, self._dtype)
        return fresh if held is None else self._xp.concat([held, fresh], axis=1)

    def write(self, request: str, layer: int, name: str, values: Array) -> None:
        """Replace the values of all blocks that the request has."""
        expected = (self._num_kv_heads, *self._fields[name].inner)
        if (values.shape[0], *values.shape[2:]) != expected:
            found = f"shape {tuple(values.shape)}"
            raise PagingError(f"state {name!r}", found, f"[{expected[0]}, n, ...]", "match it")
        self._values[request, layer, name] = self._xp.astype(values, self._dtype)

    def truncate(self, request: str, num_blocks: int) -> None:
        """Forget the values of later blocks: should they come back, they start afresh."""
        for key, values in self._values.items():
            if key[0] == request:
                self._values[key] = values[:, :num_blocks]

    def copy_request(self, source: str, target: str) -> None:
        for key in [key for key in self._values if key[0] == source]:
            self._values[target, key[1], key[2]] = self._values[key]

    def release(self, request: str) -> None:
        for key in [key for key in self._values if key[0] == request]:
            del self._values[key]

    def take_request(self, request: str) -> Mapping[tuple[int, str], Array]:
        """Remove and return what a request has, so that it can come back later."""
        taken = {key[1:]: values for key, values in self._values.items() if key[0] == request}
        self.release(request)
        return taken

    def put_request(self, request: str, values: Mapping[tuple[int, str], Array]) -> None:
        for (layer, name), array in values.items():
            self._values[request, layer, name] = array

    def snapshot(self) -> Mapping[Key, Array]:
        """Arrays are never changed in place, so the mapping alone is a copy."""
        return dict(self._values)

    def restore(self, snapshot: Mapping[Key, Array]) -> None:
        self._values = dict(snapshot)
