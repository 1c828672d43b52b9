"""All tensors that a context has in memory: taken, mapped, filled, read, unmapped, given back."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from weakref import WeakSet

import numpy as np

from tilewright.errors import RequestError
from tilewright.executor.layout import bytes_of_elements
from tilewright.executor.quiet import rare_collections
from tilewright.language.dtype import DType
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.mapping import Sight
from tilewright.runtime.driver import Driver
from tilewright.runtime.host_watch import check_host_call
from tilewright.runtime.placement.pages import (
    MemoryPart,
    Pool,
    TensorPages,
    give_back_pages,
    take_pages,
)
from tilewright.runtime.placement.placement import Placement, Targets, place
from tilewright.runtime.placement.policy import DPPolicy, LayoutWord
from tilewright.runtime.request import Request
from tilewright.runtime.tensor.array import resolve_elements
from tilewright.runtime.tensor.storage import DeviceStorage
from tilewright.runtime.tensor.tensor import Tensor
from tilewright.runtime.transfer import Bytes, read_parts, send_mapping, write_parts

MAX_NAMES = 4


class Notes(list[str]):
    """Texts in the order in which they came, each once, however often a program repeats itself."""

    def append(self, text: str) -> None:
        """Add a text, unless it is there."""
        if text not in self:
            super().append(text)

    def extend(self, texts: Iterable[str]) -> None:
        """Add those of the texts that are not there."""
        for text in texts:
            self.append(text)


class OneRowNote:
    """One line that names the tensors of one axis which ``row_wise`` has not divided.

    Such a tensor counts as (1, n). So one unit of a level that divides rows has all of it, and the
    other units have nothing. The line stands in ``notes`` and grows with every such tensor.
    """

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._names: list[str] = []  # the first of them
        self._num_tensors = 0
        self._homes: dict[str, None] = {}  # where they lie, in order
        self._line = ""

    def add(self, placement: Placement, targets: Targets) -> None:
        """Name a tensor if it is such a one."""
        # whether a level of the policy has several units to divide rows among
        divides_rows = any(
            level.layout is LayoutWord.ROW_WISE and (level.num_units or len(units)) > 1
            for level, units in zip(placement.policy.levels, targets, strict=True)
        )
        if len(placement.shape) != 1 or not placement.shards or not divides_rows:
            return
        homes = placement.homes
        where = place_name(homes[0]) if len(homes) == 1 else f"{len(homes)} PEs each"
        self._num_tensors += 1
        if len(self._names) < MAX_NAMES:
            self._names.append(placement.name)
        self._homes[where] = None
        if self._line in self._notes:
            self._notes.remove(self._line)
        self._line = self._text()
        self._notes.append(self._line)

    def _text(self) -> str:
        names = ", ".join(map(repr, self._names))
        more = self._num_tensors - len(self._names)
        who = f"tensor {names} has" if self._num_tensors == 1 else f"tensors {names} have"
        if more > 0:
            who = f"tensors {names} and {more} more have"
        where = " and ".join(self._homes)
        return (
            f"{who} one axis, which counts as one row: 'row_wise' does not divide it, so it lies "
            f"on {where}; 'column_wise' divides it"
        )


class Deployments:
    """``targets_of`` says what a policy may use now; without data floats have no bytes."""

    def __init__(
        self, driver: Driver, targets_of: Callable[[DPPolicy], Targets], *, carries_data: bool
    ) -> None:
        self._driver = driver
        self._targets_of = targets_of
        self._carries_data = carries_data
        self._pool = Pool(driver.space, driver.memory.allocator, driver.memory.physical)
        self._num_tensors = 0
        self._tensors: WeakSet[Tensor] = WeakSet()
        self._orphans: list[TensorPages] = []  # of tensors that nobody has any more
        self.notes = Notes()  # for people
        self._one_row = OneRowNote(self.notes)

    def device_pes(self) -> list[PeCoord]:
        """Return the PEs of the caller's current device, in the order of their coordinates."""
        return [PeCoord(*place) for place in product(*self._targets_of(DPPolicy()))]

    # -- making tensors --------------------------------------------------------------------------

    def empty(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        dp: DPPolicy,
        name: str | None = None,
        targets: Targets | None = None,
        sight: Sight | None = None,
    ) -> Tensor:
        """Memory that nobody has written, mapped when this returns.

        ``targets`` overrule those of the context, ``sight`` that of the placement.
        """
        tensor, requests = self._make(shape, dtype, dp, name, targets, sight)
        self._driver.wait_all(requests)
        return tensor

    def full(
        self,
        shape: tuple[int, ...],
        value: object,
        dtype: DType,
        *,
        dp: DPPolicy,
        name: str | None = None,
        timed: bool = True,
    ) -> Tensor:
        """All elements the same: maps and writes are under way at the same time."""
        element = resolve_elements("full" if name is None else f"tensor {name!r}", value, dtype)
        tensor, requests = self._make(shape, dtype, dp, name)
        parts = [
            MemoryPart(piece.place, piece.offset, len(piece.span))
            for shard in tensor.placement.shards
            for piece in self._driver.tensors[tensor.address].pieces(shard.home)
        ]
        has_bytes = self._carries_data or not dtype.is_floating()
        # eight bytes are a whole number of elements of every dtype
        word = np.full(64 // dtype.bits, element, dtype.storage)
        fill = bytes_of_elements(word, dtype).tobytes() if has_bytes else None
        what = f"fill of tensor {tensor.name!r}"
        writes = write_parts(self._driver, what, [(part, fill) for part in parts], timed=timed)
        self._driver.wait_all(requests if writes is None else [*requests, writes])
        return tensor

    @rare_collections()
    def _make(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        dp: DPPolicy,
        name: str | None,
        targets: Targets | None = None,
        sight: Sight | None = None,
    ) -> tuple[Tensor, list[Request]]:
        check_host_call("a new tensor")
        self.reclaim()
        self._num_tensors += 1
        name = name or f"t{self._num_tensors}"
        targets = self._targets_of(dp) if targets is None else targets
        placement = place(name, shape, dtype, dp, targets, self._driver.page_bytes)
        pages = take_pages(placement, self._pool, sight, targets.cubes)
        self._one_row.add(placement, targets)
        self._driver.tensors[pages.base] = pages
        for home in placement.homes:
            # there before a launch that nobody wrote for
            self._driver.memory.number(placement.memory_of(home))
        if self._driver.watch is not None:
            self._driver.watch.note_tensor(pages)
        requests = [
            send_mapping(self._driver, f"map of {placement.where}", message)
            for message in pages.mapping.map_messages()
        ]
        has_values = self._carries_data or not dtype.is_floating()
        storage = DeviceStorage(pages, self, has_values=has_values)
        tensor = Tensor(name, shape, dtype, storage, self)
        self._tensors.add(tensor)
        return tensor, requests

    # -- bytes -----------------------------------------------------------------------------------

    def write(
        self, parts: Sequence[MemoryPart], data: Sequence[Bytes] | None, *, timed: bool
    ) -> None:
        """From the host; without data only time passes."""
        check_host_call("write to a tensor")
        self._driver.settle()
        given: Sequence[Bytes | None] = [None] * len(parts) if data is None else data
        request = write_parts(
            self._driver, "write", list(zip(parts, given, strict=True)), timed=timed
        )
        if request is not None:
            self._driver.wait(request)

    def read(self, parts: Sequence[MemoryPart], *, timed: bool) -> list[Bytes]:
        """To the host, once all that is under way is complete; untimed, as it is now."""
        check_host_call("read of a tensor")
        if timed:
            self._driver.settle()
        request, data = read_parts(self._driver, "read", parts, timed=timed)
        if request is not None:
            self._driver.wait(request)
        return data

    # -- the end of tensors ----------------------------------------------------------------------

    def free(self, pages: TensorPages) -> None:
        """Unmap everywhere, once nothing is under way, and give the memory back.

        Where the failure of a launch is raised instead, the next request gives the memory back.
        """
        check_host_call("free of a tensor")
        try:
            self._driver.settle()
        except BaseException:
            self.abandon(pages)
            raise
        self._give_back([pages])

    def free_all(self) -> None:
        """Every tensor that there still is, and the memory of those that went away."""
        self._driver.settle()
        for tensor in sorted(self._tensors, key=lambda tensor: tensor.name):
            if not tensor.is_freed:
                tensor.free()
        self.reclaim()

    def abandon(self, pages: TensorPages) -> None:
        """For a finalizer, which may run anywhere: note what `reclaim` gives back."""
        self._orphans.append(pages)

    def reclaim(self) -> None:
        """Give back the memory of tensors that went away."""
        if self._orphans:
            self._driver.settle()  # first: it may raise the failure of a launch
            orphans, self._orphans = self._orphans, []
            self._give_back(orphans)

    def _give_back(self, all_pages: Sequence[TensorPages]) -> None:
        if self._driver.watch is not None:
            for pages in all_pages:
                self._driver.watch.note_free(pages)
        requests = [
            send_mapping(self._driver, f"unmap of {pages.placement.where}", message)
            for pages in all_pages
            for message in pages.mapping.unmap_messages()
        ]
        try:
            self._driver.wait_all(requests)
        except RequestError:
            raise  # a page is still mapped: its memory is not given back
        except BaseException:
            self._return_memory(all_pages)  # the run has ended, and so the pages are unmapped
            raise
        self._return_memory(all_pages)

    def _return_memory(self, all_pages: Sequence[TensorPages]) -> None:
        for pages in all_pages:
            del self._driver.tensors[pages.base]
            give_back_pages(pages.placement, pages.base, pages.homes, self._pool)
