"""Arguments of a launch as each PE sees them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright import language
from tilewright.executor.run import Replicated
from tilewright.language.argument import ArrayArgument, checked_arguments
from tilewright.language.kernel import Kernel
from tilewright.language.triton_adaptor import adapt_argument
from tilewright.machine.coords import PeCoord
from tilewright.runtime.launch_grid import Grid
from tilewright.runtime.tensor import Tensor

__all__ = ("Binding", "LocalShard", "LocalSize", "PerPe", "replicated", "tensors_of")


@dataclass(frozen=True, slots=True)
class LocalSize:
    """An argument: the extent of an axis in the shard of the PE that the program runs on."""

    tensor: Tensor
    axis: int


@dataclass(frozen=True, slots=True)
class LocalShard:
    """An argument: the start of the shard of the PE that the program runs on."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class PerPe:
    """An argument: what the mapping has for the PE that the program runs on."""

    values: Mapping[PeCoord, Any]


def tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        match value:
            case Tensor():
                yield value
            case LocalSize(tensor=tensor) | LocalShard(tensor=tensor):
                yield tensor
            case tuple():
                yield from tensors_of(value)


@dataclass(slots=True)
class Binding:
    """Arguments by name, as a PE sees them; PEs that see the same share it."""

    kernel: Kernel
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    has_grid: bool
    _known: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def grid(self, grid: Grid, pe: PeCoord) -> Any:
        """A function of the arguments gets the host's own numbers."""
        return grid(self._bound(pe)) if callable(grid) else grid

    def seen_on(self, pe: PeCoord) -> dict[str, Any]:
        values = (*self.args, *self.kwargs.values())
        key: Any = None
        if any(map(self._is_own, values)):
            key = tuple(_key(self._seen(value, pe)) for value in values)
        if key not in self._known:
            self._known[key] = checked_arguments(self.kernel, self._bound(pe))
        return self._known[key]

    def _bound(self, pe: PeCoord) -> dict[str, Any]:
        args = tuple(self._seen(value, pe) for value in self.args)
        kwargs = {name: self._seen(value, pe) for name, value in self.kwargs.items()}
        return self.kernel.bind(args, kwargs)

    def _is_own(self, value: Any) -> bool:
        """Whether PEs may see it differently."""
        match value:
            case Tensor():
                return not self.has_grid
            case LocalShard() | LocalSize() | PerPe():
                return True
            case tuple():
                return any(map(self._is_own, value))
        return False

    def _seen(self, value: Any, pe: PeCoord) -> Any:
        match value:
            case Tensor(dtype=dtype):
                offset = 0 if self.has_grid else value.placement.sip_offset(pe.sip)
                return ArrayArgument(value.address + offset, dtype)
            case LocalShard(tensor=tensor):
                offset = tensor.placement.local_offset(pe)
                return ArrayArgument(tensor.address + offset, tensor.dtype)
            case LocalSize(tensor=tensor, axis=axis):
                return tensor.placement.local_size(pe, axis)
            case PerPe(values=values):
                return values[pe]
            case tuple():
                return tuple(self._seen(part, pe) for part in value)
        return adapt_argument(value, language)


def _key(value: Any) -> Any:
    """Arguments that differ only by place are values; others are known by what they are."""
    return value if isinstance(value, ArrayArgument | int | tuple) else id(value)


def replicated(tensors: Iterable[Tensor]) -> Iterator[Replicated]:
    for tensor in dict.fromkeys(tensors):
        placement = tensor.placement
        if len(placement.owners) < len(placement.shards):
            low = tensor.address
            yield Replicated(low, low + placement.num_bytes, tensor.name)
