"""State of flows: values per request, layer, KV head and logical block, never shared."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from tilewright.errors import PagingError

Array: TypeAlias = Any  # of the namespace that the store was built with
Layer: TypeAlias = tuple[str, int]  # request, layer
NOTHING: Mapping[str, Array] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StateField:
    """Something kept for each block of a request: ``[kv_heads, blocks, *inner]``."""

    name: str
    inner: tuple[int, ...]
    dtype: Any  # of the namespace, with ``itemsize``


class StateStore:
    """Private arrays of each request and layer, by name.

    They are keyed by the request and the logical block, so a prefix hit starts where a cold start
    does, and no other request can read or write them. They go with the request. Arrays are never
    changed in place: whoever holds a mapping of a layer holds a snapshot of it.
    """

    def __init__(self, fields: tuple[StateField, ...], *, namespace: Any) -> None:
        self._fields = {field.name: field for field in fields}
        self._xp = namespace
        self._layers: dict[Layer, Mapping[str, Array]] = {}

    @property
    def num_bytes(self) -> int:
        total = 0
        for values in self._layers.values():
            for name, array in values.items():
                item_bytes: int = self._fields[name].dtype.itemsize
                total += math.prod(array.shape) * item_bytes
        return total

    def layer(self, request: str, layer: int) -> Mapping[str, Array]:
        """Everything that is kept of one layer; stays as it is whatever happens later."""
        return self._layers.get((request, layer), NOTHING)

    def set_layer(self, request: str, layer: int, values: Mapping[str, Array]) -> None:
        self._layers[request, layer] = MappingProxyType(dict(values))

    def read(self, request: str, layer: int, name: str, start: Array) -> Array:
        """Values of all blocks of ``start``; blocks that were never written have those of it."""
        held = self.layer(request, layer).get(name)
        if held is None:
            return start
        num_blocks = start.shape[1]
        if held.shape[1] >= num_blocks:
            return held[:, :num_blocks]
        return self._xp.concat([held, start[:, held.shape[1] :]], axis=1)

    def write(self, request: str, layer: int, written: Mapping[str, Array]) -> None:
        """Replace the values of several fields at once, each for all blocks it has now."""
        for name, array in written.items():
            inner = self._fields[name].inner
            if tuple(array.shape[2:]) != inner:
                found = f"inner shape {tuple(array.shape[2:])}"
                raise PagingError(f"state {name!r}", found, f"{inner}", "match the field")
        self.set_layer(request, layer, {**self.layer(request, layer), **written})

    def truncate(self, request: str, num_blocks: int, names: frozenset[str] | None = None) -> None:
        """Forget later blocks: should they come back, they start afresh. All names by default."""
        for key, values in self._layers.items():
            if key[0] == request:
                self._layers[key] = MappingProxyType(
                    {
                        name: array[:, :num_blocks] if names is None or name in names else array
                        for name, array in values.items()
                    }
                )

    def copy_request(self, source: str, target: str) -> None:
        for key in [key for key in self._layers if key[0] == source]:
            self._layers[target, key[1]] = self._layers[key]

    def take_request(self, request: str) -> Mapping[int, Mapping[str, Array]]:
        """Remove and return what a request has, so that it can come back later."""
        keys = [key for key in self._layers if key[0] == request]
        return {key[1]: self._layers.pop(key) for key in keys}

    def put_request(self, request: str, layers: Mapping[int, Mapping[str, Array]]) -> None:
        for layer, values in layers.items():
            self.set_layer(request, layer, values)

    def snapshot(self) -> Mapping[Layer, Mapping[str, Array]]:
        return dict(self._layers)

    def restore(self, snapshot: Mapping[Layer, Mapping[str, Array]]) -> None:
        self._layers = dict(snapshot)
