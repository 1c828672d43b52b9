"""Tensors of a host program: on the host, or in the memories of a machine. One interface.

What goes between the host and the machine takes simulated time, unless it says ``timed=False``;
only a printed tensor takes none. A replicated tensor is read from the lowest PE that has it, and
refused if its copies differ; ``local`` reads the copy of one PE.
"""

import weakref
from collections.abc import Collection, Iterator
from math import prod
from typing import Any, Literal, Protocol, Self

import numpy as np

from tilewright.errors import TensorError, TilewrightError
from tilewright.language.dtype import DType
from tilewright.machine.coords import PeCoord
from tilewright.runtime.placement.pages import TensorPages
from tilewright.runtime.placement.placement import Placement, Shard
from tilewright.runtime.placement.policy import DPPolicy
from tilewright.runtime.placement.text import homes_text
from tilewright.runtime.tensor.array import (
    convert_elements,
    native_array,
    resolve_elements,
    resolve_index,
    whole_box,
)
from tilewright.runtime.tensor.storage import DeviceStorage, HostStorage, Transport

MAX_SHOWN = 100  # elements of a printed tensor

Array = np.ndarray[Any, Any]


class TensorOwner(Transport, Protocol):
    """What a tensor asks of the context that made it."""

    def empty(
        self, shape: tuple[int, ...], dtype: DType, *, dp: DPPolicy, name: str | None = None
    ) -> "Tensor":
        """A new tensor in the machine, with any values."""


class Tensor:
    """Elements of one dtype, in the shape of a box. Made by a context, never by itself."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        storage: HostStorage | DeviceStorage,
        owner: TensorOwner,
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self._storage: HostStorage | DeviceStorage | None = storage
        self.owner = owner  # the context that made it
        if isinstance(storage, DeviceStorage):
            # weakly: a launch that nobody waits for keeps its tensors, and these their owner
            self._finalizer = weakref.finalize(self, _abandon, weakref.ref(owner), storage.pages)
            self._finalizer.atexit = False  # the machine ends with the process

    # What it is

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        """Elements."""
        return prod(self.shape)

    def element_size(self) -> int:
        """Bytes of an element."""
        if self.dtype.bits < 8:
            found = f"the bytes of an element of {self.dtype.bits} bits"
            raise TensorError(self._where, found, "at least a byte", "ask for nbytes")
        return self.dtype.bits // 8

    @property
    def nbytes(self) -> int:
        """Of its packed elements, once."""
        return -(-self.numel() * self.dtype.bits // 8)

    @property
    def is_host(self) -> bool:
        return isinstance(self._live, HostStorage)

    @property
    def is_freed(self) -> bool:
        return self._storage is None

    @property
    def has_values(self) -> bool:
        """Whether it has elements; in a context without data only integers have."""
        return self._live.has_values

    @property
    def shards(self) -> tuple[Shard, ...]:
        """What each PE has; on the host there are none."""
        return () if self.is_host else self.placement.shards

    @property
    def placement(self) -> Placement:
        """Where it lies in the machine."""
        return self._device.placement

    @property
    def address(self) -> int:
        """Where its virtual range begins."""
        return self._device.pages.base

    @property
    def data(self) -> Array:
        """A copy of its elements."""
        return self.numpy()

    # Reading

    def numpy(self, *, timed: bool = True) -> Array:
        """A copy of its elements."""
        self._check_values()
        return self._live.read(whole_box(self.shape), timed=timed)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            fix = "leave copy out"
            raise TensorError(self._where, "an array that shares memory", "a copy", fix)
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __getitem__(self, key: Any) -> Any:
        return self.read(key)

    def read(self, key: Any, *, timed: bool = True) -> Any:
        """A copy of the elements that a key selects."""
        selection = resolve_index(self._where, key, self.shape)
        self._check_values()
        return self._live.read(selection.box, timed=timed)[selection.key]

    def local(self, pe: PeCoord, *, timed: bool = True) -> Array:
        """A copy of what one PE has: its own replica of a box."""
        storage = self._device
        self._check_values()
        storage.placement.local_shape(pe)
        return storage.read_shard(pe, timed=timed)

    def item(self, *, timed: bool = True) -> Any:
        """Its only element as a number of Python."""
        if self.numel() != 1:
            found = f"{self.numel()} elements"
            raise TensorError(self._where, found, "one", "index one of them")
        return self.numpy(timed=timed).item()

    def tolist(self, *, timed: bool = True) -> Any:
        """Nested lists of numbers of Python."""
        return self.numpy(timed=timed).tolist()

    def __len__(self) -> int:
        if not self.shape:
            raise TensorError(self._where, "the length of a scalar", "an axis", "ask for item()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        len(self)
        return iter(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.item())

    # Writing

    def copy_(
        self, source: Any, *, timed: bool = True, only: Collection[PeCoord] | None = None
    ) -> Self:
        """Take the elements of a tensor or an array, converted and broadcast as torch does.

        Between two tensors of a machine they go through the host. ``only`` names the PEs whose
        copies of a replicated tensor are written: the others keep what they have.
        """
        values = self._source_values(source, timed=timed)
        elements = self._fit(values, self.shape)
        if only is None:
            self._live.write(whole_box(self.shape), elements, timed=timed)
        else:
            self._device.write(whole_box(self.shape), elements, timed=timed, only=only)
        return self

    def fill_(self, value: Any, *, timed: bool = True) -> Self:
        """One number everywhere."""
        elements = resolve_elements(self._where, value, self.dtype)
        if elements.ndim:
            raise TensorError(self._where, f"{value!r}", "one number", "use copy_ for several")
        self._live.write(whole_box(self.shape), self._fit(elements, self.shape), timed=timed)
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        storage = self._live
        selection = resolve_index(self._where, key, self.shape)
        values = self._fit(self._source_values(value, timed=True), selection.shape)
        array = np.zeros(selection.box_shape, self.dtype.storage)
        array[selection.key] = values
        mask = np.zeros(selection.box_shape, np.bool_)
        mask[selection.key] = True
        is_whole = bool(mask.all())
        storage.write(selection.box, array, mask=None if is_whole else mask, timed=True)

    # Moving and freeing

    def to(
        self,
        target: DPPolicy | Literal["cpu"] | None = None,
        *,
        dp: DPPolicy | None = None,
        timed: bool = True,
    ) -> "Tensor":
        """A copy with another placement, or on the host (``"cpu"``); there it is itself."""
        where = target if dp is None else dp
        if isinstance(where, DPPolicy) and None in (target, dp):
            made = self.owner.empty(self.shape, self.dtype, dp=where)
            return made.copy_(self, timed=timed)
        if where != "cpu" or dp is not None:
            found = f"to({target!r}, dp={dp!r})"
            raise TensorError(self._where, found, "a DPPolicy or 'cpu'", "name one of them")
        if self.is_host:
            return self
        return host_tensor(self.numpy(timed=timed), self.owner, name=self.name)

    def free(self) -> None:
        """Give its memory back; every other use is refused from then on. Again does nothing."""
        storage, self._storage = self._storage, None
        if isinstance(storage, DeviceStorage):
            self._finalizer.detach()
            self.owner.free(storage.pages)

    def __repr__(self) -> str:
        facts = [f"shape={self.shape}", f"dtype={self.dtype}", f"name={self.name!r}"]
        storage = self._storage
        if storage is None:
            return f"tensor(freed, {', '.join(facts)})"
        if isinstance(storage, DeviceStorage):
            facts.append(f"on={homes_text(self.placement.homes) or 'no PE'}")
        return f"tensor({self._values_text(storage)}, {', '.join(facts)})"

    # What the others are made of

    @property
    def _where(self) -> str:
        return f"tensor {self.name!r}"

    @property
    def _live(self) -> HostStorage | DeviceStorage:
        if self._storage is None:
            raise TensorError(self._where, "a use after it was freed", "a live one", "make it anew")
        return self._storage

    @property
    def _device(self) -> DeviceStorage:
        storage = self._live
        if isinstance(storage, HostStorage):
            fix = "place it: t.to(dp=DPPolicy(...))"
            raise TensorError(self._where, "a tensor on the host", "one in the machine", fix)
        return storage

    def _check_values(self) -> None:
        if not self.has_values:
            found = f"no values, since its context has no data and {self.dtype} is a float"
            fix = "make the context with data=True"
            raise TensorError(self._where, found, "values", fix)

    def _values_text(self, storage: HostStorage | DeviceStorage) -> str:
        if not storage.has_values:
            return "no values"
        if self.numel() > MAX_SHOWN:
            return "..."
        try:
            values = self.numpy(timed=False)
        except TensorError:
            return "copies that differ"
        except TilewrightError:  # its machine has stopped; who prints wants to find out why
            return "values that cannot be read"
        return np.array2string(values, separator=", ", prefix="tensor(")

    def _source_values(self, source: Any, *, timed: bool) -> Array:
        """Elements of this tensor's dtype; a tensor without values only takes its time."""
        if not isinstance(source, Tensor):
            return resolve_elements(self._where, source, self.dtype)
        if self.has_values:
            source._check_values()
        array = source._live.read(whole_box(source.shape), timed=timed)
        return convert_elements(array, source.dtype, self.dtype)

    def _fit(self, values: Array, shape: tuple[int, ...]) -> Array:
        try:
            return np.broadcast_to(values, shape)
        except ValueError as error:
            found = f"values of shape {values.shape}"
            expected = f"{shape}, or what broadcasts to it"
            raise TensorError(self._where, found, expected, "reshape them") from error


def _abandon(owner: "weakref.ref[TensorOwner]", pages: TensorPages) -> None:
    """Tell the owner of a tensor that has gone, if there still is one."""
    living = owner()
    if living is not None:
        living.abandon(pages)


def host_tensor(array: Any, owner: TensorOwner, *, name: str = "host") -> Tensor:
    """A tensor on the host with a copy of an array."""
    elements, dtype = native_array(f"tensor {name!r}", array)
    return Tensor(name, elements.shape, dtype, HostStorage(elements), owner)
