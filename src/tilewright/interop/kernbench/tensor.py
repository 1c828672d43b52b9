"""Tensors of KernBench programs: ``kernbench.runtime_api.tensor``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np

from tilewright.errors import TensorError
from tilewright.interop.kernbench.allocator import PEMemAllocator, VirtualAllocator
from tilewright.interop.kernbench.placement import DPPolicy, ShardSpec
from tilewright.interop.kernbench.value import dtype_itemsize, dtype_of_array, dtype_of_text
from tilewright.machine.coords import PeCoord
from tilewright.runtime.tensor import tensor as ours

Array = np.ndarray[Any, Any]

TargetPe = int | tuple[int, ...] | str
"""PEs of each cube: one, several, or "all"."""


@dataclass(frozen=True, slots=True)
class TensorShard:
    """A shard on one PE, with its physical address."""

    sip: int
    cube: int
    pe: int
    pa: int
    nbytes: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class DeployedTensor:
    """The memory of a tensor: its virtual range and its shards."""

    va_base: int
    nbytes: int
    shards: tuple[TensorShard, ...]


@dataclass(frozen=True, slots=True)
class PlacedTensor:
    """A tensor of our runtime, and what KernBench calls the parts of it."""

    memory: ours.Tensor
    dp: DPPolicy
    handle: DeployedTensor
    target_pe: TargetPe


class Tensor:
    """Elements of one dtype: metadata alone, an array of the host, or memory of the machine.

    A context makes tensors that have memory; ``Tensor(...)`` by hand has none.
    """

    def __init__(self, shape: Sequence[int], dtype: str = "f16", name: str = "tensor") -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.name = name
        dtype_of_text(dtype, f"tensor {name!r}")
        self.placed: PlacedTensor | None = None  # in the machine, until it is freed
        self._host: Array | None = None

    @classmethod
    def of_array(cls, array: Array) -> "Tensor":
        """Return a tensor of the host over an array, which is copied only if it has gaps."""
        contiguous = np.ascontiguousarray(array)
        made = cls(contiguous.shape, dtype_of_array(contiguous), "host")
        made._host = contiguous
        return made

    # What it is

    @property
    def numel(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements, once."""
        return self.numel * dtype_itemsize(self.dtype)

    @property
    def va_base(self) -> int:
        """The virtual address of its first byte."""
        return self.in_machine.handle.va_base

    @property
    def shards(self) -> tuple[TensorShard, ...]:
        """The tensor's shards, one for each PE that has one."""
        return self.in_machine.handle.shards

    @property
    def in_machine(self) -> PlacedTensor:
        """Its memory in the machine; a tensor that has none is refused."""
        if self.placed is None:
            fix = "make it by torch.zeros or torch.empty with dp=DPPolicy(...), then copy_ into it"
            found = "a tensor of the host" if self.is_host else "a tensor without memory"
            raise TensorError(f"tensor {self.name!r}", found, "one in the machine", fix)
        return self.placed

    @property
    def _handle(self) -> DeployedTensor | None:
        """Its range and shards, by the name that KernBench's context has; None without memory."""
        return None if self.placed is None else self.placed.handle

    @property
    def is_host(self) -> bool:
        """Whether its elements are an array of the host."""
        return self._host is not None

    # Reading and writing

    def numpy(self) -> Array:
        """Return a copy of its elements, once all that is under way is complete."""
        if self._host is not None:
            return self._host.copy()
        return self.in_machine.memory.numpy()

    @property
    def data(self) -> Array:
        """A copy of its elements."""
        return self.numpy()

    def local(self, pe: Sequence[int]) -> Array:
        """Return a copy of the elements that the PE (sip, cube, pe) has: of copies, its own."""
        return self.in_machine.memory.local(PeCoord(*pe))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = np.array(self.numpy(), copy=copy)
        return array if dtype is None else array.astype(dtype)

    def __getitem__(self, key: Any) -> Any:
        return self._host[key] if self._host is not None else self.in_machine.memory[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._host is not None:
            self._host[key] = value
        else:
            self.in_machine.memory[key] = value.numpy() if isinstance(value, Tensor) else value

    def __len__(self) -> int:
        return self.shape[0]

    def copy_(self, source: Any) -> Self:
        """Take the elements of a tensor or an array; into the machine this takes simulated time."""
        values = source.numpy() if isinstance(source, Tensor) else np.asarray(source)
        if self._host is not None:
            np.copyto(self._host, values)
        else:
            self.in_machine.memory.copy_(values)
        return self

    def to(
        self,
        placement: Sequence[ShardSpec] = (),
        target_pe: int | tuple[int, ...] | str = "all",
        dp_policy: DPPolicy | None = None,
    ) -> Self:
        """Refuse to place a tensor that a context has not made."""
        del placement, target_pe, dp_policy
        fix = "make it by torch.zeros or torch.empty with dp=DPPolicy(...)"
        raise TensorError(
            f"tensor {self.name!r}", "to(placement=...)", "a tensor that a context places", fix
        )

    def __repr__(self) -> str:
        facts = f"shape={self.shape}, dtype={self.dtype!r}, name={self.name!r}"
        if self._host is not None:
            return f"Tensor(host, {facts})"
        if self.placed is None:
            return f"Tensor({facts})"
        return f"Tensor({facts}, shards={len(self.shards)})"


def deploy_tensor(
    name: str,
    shape: Sequence[int],
    dtype: str,
    placement: Sequence[ShardSpec],
    allocators: Mapping[Any, PEMemAllocator],
    va_allocator: VirtualAllocator | None = None,
) -> DeployedTensor:
    """Take memory for shards from allocators of the caller's own; nothing is mapped or written.

    Tensors of a context have memory that the context has taken: launch kernels on those.
    """
    where, nbytes = f"tensor {name!r}", prod(shape) * dtype_itemsize(dtype)
    by_pe = {(each.sip_id, each.cube_id, each.pe_id): each for each in allocators.values()}
    shards = []
    for spec in placement:
        home = spec.sip, spec.cube, spec.pe
        if home not in by_pe:
            found = f"no allocator of the PE {home}"
            raise TensorError(where, found, "one for the PE of each shard", "add it")
        address = by_pe[home].alloc_hbm(spec.nbytes)
        pa = address if isinstance(address, int) else address.encode()
        shards.append(TensorShard(*home, pa, spec.nbytes, spec.offset_bytes))
    va_base = 0 if va_allocator is None else va_allocator.alloc(nbytes)
    return DeployedTensor(va_base, nbytes, tuple(shards))
