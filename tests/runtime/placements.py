"""Random placements, arrays to put there, and the memories of a small machine to hold them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from tilewright.executor.layout import elements_of_bytes
from tilewright.language.dtype import DTYPES, DType, int4
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory import Allocator, ByteStore, MappingPlan, PageTable, VirtualSpace
from tilewright.runtime.placement import policy as division
from tilewright.runtime.placement.pages import (
    MemoryPart,
    Pool,
    TensorPages,
    give_back_pages,
    take_pages,
)
from tilewright.runtime.placement.placement import Placement, Targets, place
from tilewright.runtime.placement.policy import DPPolicy, Interleave, LayoutWord, Split
from tilewright.runtime.tensor.storage import DeviceStorage
from tilewright.runtime.tensor.tensor import Tensor, host_tensor

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

__all__ = ("PES", "SmallPool", "StoreOwner", "bits_of", "draw_array", "placements", "policies")

PES = [PeCoord(*place) for place in product(range(2), range(3), range(2))]
TARGETS = Targets(sips=(0, 1), cubes=(0, 1, 2), pes=(0, 1))
SLICE_BYTES = 2**20


@dataclass
class SmallPool:
    """Pages of all PEs, and a page table for each of them."""

    page_bytes: int
    space: VirtualSpace = field(init=False)
    allocators: dict[PeCoord, Allocator] = field(init=False)
    tables: dict[PeCoord, PageTable] = field(init=False)
    pool: Pool = field(init=False)

    def __post_init__(self) -> None:
        page = self.page_bytes
        self.space = VirtualSpace(page_bytes=page)
        self.allocators = {pe: Allocator(place_name(pe), SLICE_BYTES, alignment=page) for pe in PES}
        self.tables = {pe: PageTable(place_name(pe), page) for pe in PES}
        self.pool = Pool(
            self.space,
            lambda place: self.allocators[place.pe],
            lambda place, offset: self.physical(place.pe, offset),
        )

    def physical(self, pe: PeCoord, offset: int) -> int:
        return PES.index(pe) * SLICE_BYTES + offset

    def install(self, plan: MappingPlan) -> None:
        for message in plan.map_messages():
            for pe in filter(message.target.has, PES):
                self.tables[pe].map(message.mappings)

    def remove(self, plan: MappingPlan) -> None:
        for message in plan.unmap_messages():
            for pe in filter(message.target.has, PES):
                self.tables[pe].unmap(message.ranges)

    @property
    def used_bytes(self) -> int:
        slices = sum(taken.statistics.used_bytes for taken in self.allocators.values())
        return slices + self.space.statistics.used_bytes


class StoreOwner:
    """Tensors over real stores, without a machine: what is timed is only noted."""

    def __init__(self, page_bytes: int = 64, *, carries_data: bool = True) -> None:
        self.small = SmallPool(page_bytes)
        self.stores = {pe: ByteStore(place_name(pe), SLICE_BYTES) for pe in PES}
        self.carries_data = carries_data
        self.timed: list[tuple[str, int]] = []  # what took time, and for how many bytes
        self.written: list[MemoryPart] = []
        self.abandoned: list[TensorPages] = []

    def write(
        self, parts: Sequence[MemoryPart], data: Sequence[Bytes] | None, *, timed: bool
    ) -> None:
        self._note("write", parts, timed=timed)
        self.written.extend(parts)
        for (at, offset, num_bytes), piece in zip(parts, data or (), strict=data is not None):
            assert piece.size == num_bytes
            self.stores[at.pe].write(offset, piece)

    def read(self, parts: Sequence[MemoryPart], *, timed: bool) -> list[Bytes]:
        self._note("read", parts, timed=timed)
        return [self.stores[at.pe].read(offset, num_bytes) for at, offset, num_bytes in parts]

    def free(self, pages: TensorPages) -> None:
        self.small.remove(pages.mapping)
        give_back_pages(pages.placement, pages.base, pages.homes, self.small.pool)

    def abandon(self, pages: TensorPages) -> None:
        self.abandoned.append(pages)

    def empty(
        self, shape: tuple[int, ...], dtype: DType, *, dp: DPPolicy, name: str | None = None
    ) -> Tensor:
        page_bytes = self.small.page_bytes
        return self.tensor(place(name or "t", shape, dtype, dp, TARGETS, page_bytes))

    def tensor(self, placement: Placement) -> Tensor:
        pages = take_pages(placement, self.small.pool)
        self.small.install(pages.mapping)
        has_values = self.carries_data or placement.dtype.is_int()
        storage = DeviceStorage(pages, self, has_values=has_values)
        return Tensor(placement.name, placement.shape, placement.dtype, storage, self)

    def host(self, array: object) -> Tensor:
        return host_tensor(array, self)

    def _note(self, what: str, parts: Sequence[MemoryPart], *, timed: bool) -> None:
        if timed:
            self.timed.append((what, sum(part.num_bytes for part in parts)))


@st.composite
def policies(draw: st.DrawFn, rank: int, page_bytes: int) -> DPPolicy:
    """Any that is legal: no split by an axis below an interleave."""
    words = st.sampled_from(list(LayoutWord))
    blocks = st.integers(1, 3).map(lambda pages: Interleave(pages * page_bytes))
    options: list[st.SearchStrategy[Any]] = [words, blocks]
    if rank:
        options.append(st.integers(-rank, rank - 1).map(Split))
    layouts: list[Any] = []
    for _ in range(3):
        if any(isinstance(layout, Interleave) for layout in layouts):
            options = [st.just(LayoutWord.REPLICATE), blocks]
        layouts.append(draw(st.one_of(options)))
    counts = [draw(st.none() | st.integers(1, most)) for most in (2, 3, 2)]
    return DPPolicy(*layouts, *counts)


@st.composite
def placements(draw: st.DrawFn, max_size: int = 9) -> Placement:
    page_bytes = draw(st.sampled_from([8, 16, 64]))
    shape = tuple(draw(st.lists(st.integers(0, max_size), max_size=4)))
    dtype = draw(st.sampled_from((*DTYPES, int4, int4, int4)))  # the only one that shares bytes
    policy = draw(policies(len(shape), page_bytes))
    # large tensors are patterns that repeat: here small ones are, too
    most = draw(st.sampled_from((0, division.MAX_EXPLICIT)))
    with mock.patch.object(division, "MAX_EXPLICIT", most):
        return place("t", shape, dtype, policy, TARGETS, page_bytes)


def draw_array(data: st.DataObject, shape: tuple[int, ...], dtype: DType) -> np.ndarray[Any, Any]:
    """Any bits, but for booleans, which have two values."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    count = prod(shape)
    if dtype.storage == np.bool_:
        return generator.integers(0, 2, shape).astype(np.bool_)
    raw = generator.integers(0, 256, -(-count * dtype.bits // 8), dtype=np.uint8)
    return elements_of_bytes(raw, dtype, count).reshape(shape)


def bits_of(array: np.ndarray[Any, Any]) -> bytes:
    """To compare by, since a NaN is not equal to itself."""
    return array.tobytes()
