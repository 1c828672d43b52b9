"""The first step of a launch: its options, and its arguments as each PE sees them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilewright import language
from tilewright.errors import KernelError
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.language.kernel import ArrayArgument, Kernel, checked_arguments
from tilewright.language.triton.adaptor import adapt_argument, adapt_kernel
from tilewright.machine.coords import PeCoord
from tilewright.runtime.tensor.tensor import Tensor, TensorOwner

Grid = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]
On = Sequence[PeCoord] | Callable[..., PeCoord] | Tensor
"""PEs in turn; a function of a program's ids; the owners of equal fractions of a tensor."""


class LaunchOwner(TensorOwner, Protocol):
    """The context that launches, and that made the tensors."""

    def device_pes(self) -> Sequence[PeCoord]:
        """Return the PEs of the caller's current device, in the order of their coordinates."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """All of a launch but the kernel and its arguments."""

    name: str | None = None
    grid: Grid | None = None
    on: On | None = None
    neighbours: Neighbours | Post | Mapping[Any, Mapping[str, Any]] | None = None
    """Rings for this launch, by PE or program and direction; a Post is rings that are there.

    None: each PE uses the rings that were installed there last, if there are any.
    """
    resident: int = 1
    synchronised_start: bool = False
    carries_data: bool = True
    earliest_start_ps: int = 0  # simulated time before which no program begins


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


def _tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        match value:
            case Tensor():
                yield value
            case LocalSize(tensor=tensor) | LocalShard(tensor=tensor):
                yield tensor
            case tuple():
                yield from _tensors_of(value)


@dataclass(slots=True)
class Binding:
    """Arguments by name, as a PE sees them; PEs that see the same share it."""

    kernel: Kernel
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: tuple[Tensor, ...]  # that the arguments name
    has_grid: bool
    _known: dict[Any, dict[str, Any]] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The kernel, as errors of the launch name it."""
        return f"kernel {self.kernel.name!r}"

    def seen_on(self, pe: PeCoord) -> dict[str, Any]:
        values = (*self.args, *self.kwargs.values())
        key: Any = None
        if any(map(self._is_own, values)):
            # arguments that differ only by place are values; others are known by what they are
            seen = [self._seen(value, pe) for value in values]
            key = tuple(
                each if isinstance(each, ArrayArgument | int | tuple) else id(each) for each in seen
            )
        if key not in self._known:
            self._known[key] = checked_arguments(self.kernel, self.bound(pe))
        return self._known[key]

    def bound(self, pe: PeCoord) -> dict[str, Any]:
        """Return the arguments by name, with the host's own numbers."""
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


def bind(
    kernel: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    owner: TensorOwner,
    *,
    has_grid: bool,
) -> Binding:
    """Take a kernel and what it is called with; refuse tensors that no PE of the owner has."""
    adapted = adapt_kernel(kernel, language)
    tensors = tuple(_tensors_of([*args, *kwargs.values()]))
    binding = Binding(adapted, tuple(args), dict(kwargs), tensors, has_grid)
    for tensor in tensors:
        if tensor.owner is not owner:
            found, fix = f"tensor {tensor.name!r} of another context", "copy it to one of these"
            raise KernelError(binding.where, found, "tensors of this context", fix)
        if tensor.is_host:
            found = f"tensor {tensor.name!r}, which is on the host"
            fix = "copy_ it into a tensor that has a placement"
            raise KernelError(binding.where, found, "tensors in the machine", fix)
    return binding
