"""Arrays in the simulated memory and kernels over them, without a host: for tests and benches.

Arrays are put there and read back outside of simulated time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tilewright import language
from tilewright.device.build import Device, build_device
from tilewright.device.mmu import Mmu
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.launch import ArrayArgument, DescriptorArgument, Launcher, LaunchResult
from tilewright.language.triton_adaptor import adapt_argument, adapt_kernel
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.address import PhysicalPage, VirtualByte, VirtualPage
from tilewright.memory.page_table import PageMapping, PageRange, PageTable
from tilewright.memory.virtual import VirtualSpace
from tilewright.runtime.memory import DeviceMemory

__all__ = ("PlacedArray", "Workspace")


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """An array in virtual memory, page by page in the slices of some PEs."""

    address: int
    dtype: DType
    shape: tuple[int, ...]

    @property
    def argument(self) -> ArrayArgument:
        """What a kernel gets."""
        return ArrayArgument(self.address, self.dtype)


class Workspace:
    """One device with its memories; every PE sees the same virtual addresses."""

    def __init__(self, machine: Machine, choice: EngineKind | Auto = AUTO) -> None:
        self.machine = machine
        self.device: Device = build_device(machine, choice)
        self._page_bytes = machine.spec.pe.mmu.page_bytes
        self._memory = DeviceMemory(self.device)
        self._space = VirtualSpace(page_bytes=self._page_bytes)
        self._table = PageTable("workspace", self._page_bytes)
        self._mmus: dict[PeCoord, Mmu] = {}
        namespace: ModuleType = language
        self._launcher = Launcher(
            self.device, self._memory.memories, self._memory.locate, self._mmu, vars(namespace)
        )

    def place(self, values: np.ndarray[Any, Any], pes: Sequence[PeCoord]) -> PlacedArray:
        """Put an array into memory, its pages dealt to the slices of these PEs in turn."""
        values = np.ascontiguousarray(values)
        dtype = dtype_of(values.dtype)
        data = values.reshape(-1).view(np.uint8)
        size = self._page_bytes
        num_pages = max(1, -(-data.size // size))
        address = self._space.allocate(num_pages * size, requester="array")
        first = address // size
        for page in range(num_pages):
            pe = pes[page % len(pes)]
            offset = self._memory.allocator(pe).allocate(size, requester="array")
            physical = self.machine.addresses.hbm(pe, offset).value
            mapping = PageMapping(
                PageRange(VirtualPage(first + page), 1), PhysicalPage(physical // size)
            )
            self._table.map([mapping])
            store = self._memory.memories[self._memory.slice_of(pe)].storage
            part = data[page * size : (page + 1) * size]
            if part.size:
                store.write_segments(part.reshape(1, -1), offset, part.size)
        return PlacedArray(address, dtype, values.shape)

    def describe(self, array: PlacedArray, block_shape: tuple[int, ...]) -> DescriptorArgument:
        """A tensor descriptor over an array, as a host makes it."""
        strides = [1]
        for extent in reversed(array.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return DescriptorArgument(array.argument, array.shape, tuple(strides), block_shape)

    def read(self, array: PlacedArray) -> np.ndarray[Any, Any]:
        """A copy of an array as it is now."""
        count = int(np.prod(array.shape, dtype=np.int64))
        data = np.empty(count * array.dtype.storage.itemsize, np.uint8)
        done = 0
        if data.size:
            for physical, length in self._table.runs(VirtualByte(array.address), data.size):
                memory, offset = self._memory.locate(physical)
                part = data[done : done + length].reshape(1, -1)
                self._memory.memories[memory].storage.read_segments(part, offset, length)
                done += length
        return data.view(array.dtype.storage).reshape(array.shape)

    def launch(
        self,
        kernel: Any,
        *args: Any,
        grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
        pes: Sequence[PeCoord],
        carries_data: bool = True,
        **kwargs: Any,
    ) -> LaunchResult:
        """Run a kernel; its programs are dealt to the PEs in turn."""
        adapted = adapt_kernel(kernel, language)
        arguments = tuple(map(_argument, args))
        named = {name: _argument(value) for name, value in kwargs.items()}
        return self._launcher.launch(
            adapted, arguments, named, grid=grid, pes=pes, carries_data=carries_data
        )

    def _mmu(self, pe: PeCoord) -> Mmu:
        if pe not in self._mmus:
            name = f"{place_name(pe)}.mmu"
            self._mmus[pe] = Mmu(name, self.machine.spec.pe.mmu, self._table)
        return self._mmus[pe]


def _argument(value: Any) -> Any:
    return value.argument if isinstance(value, PlacedArray) else adapt_argument(value, language)
