"""Arrays in the simulated memory and kernels over them, without a host: for tests and benches.

Arrays are put there and read back outside of simulated time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright import language
from tilewright.device.block import num_bytes_of
from tilewright.device.build import Device
from tilewright.device.command import CommandPath
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.engine.hub import Hub
from tilewright.engine.spec import Limits
from tilewright.errors import KernelError
from tilewright.executor.effect import WatchedEffectLog
from tilewright.executor.launcher import Launcher, Share, check_pes
from tilewright.executor.layout import bytes_of_elements, elements_of_bytes, item_bits
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.quiet import quiet_values
from tilewright.executor.run import (
    Counters,
    Run,
    Terms,
    build_effect_log,
    checked_grid,
    dealt,
)
from tilewright.executor.stream import Stream
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.kernel import ArrayArgument, DescriptorArgument, checked_arguments
from tilewright.language.triton.adaptor import adapt_argument, adapt_kernel
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import (
    MemoryKind,
    MemoryPlace,
    PhysicalByte,
    RangeMapping,
    VirtualByte,
    VirtualPage,
    VirtualRange,
)
from tilewright.memory.allocator import QuarantinedSpace, VirtualSpace, virtual_capacity_bytes
from tilewright.memory.page_table import PageTable
from tilewright.memory.sanitizer.access import AccessKind
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.memory.sanitizer.tensor import Region, TensorBook, TensorPart, WatchedTensor
from tilewright.runtime.device import (
    DeviceMemory,
    Mmus,
    apply_served,
    build_device_at,
)


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """Times are of the device's clock: from the first command to the end of the last."""

    start_ps: int
    end_ps: int
    counters: Counters

    @property
    def latency_ps(self) -> int:
        return self.end_ps - self.start_ps


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """An array in virtual memory, page by page in the memories of some PEs."""

    address: int
    dtype: DType
    shape: tuple[int, ...]

    @property
    def argument(self) -> ArrayArgument:
        """What a kernel gets."""
        return ArrayArgument(self.address, self.dtype)


class Workspace:
    """One device with its memories; every PE sees the same virtual addresses."""

    def __init__(
        self,
        machine: Machine,
        choice: EngineKind | Auto = AUTO,
        *,
        sanitizer: Sanitizer | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.machine = machine
        self._choice = choice
        self._limits = Limits() if limits is None else limits
        self._page_bytes = machine.spec.pe.mmu.page_bytes
        self._memory = DeviceMemory(machine)
        self._sanitizer = sanitizer
        space = VirtualSpace if sanitizer is None else QuarantinedSpace
        capacity_bytes = virtual_capacity_bytes(machine)
        self._space = space(page_bytes=self._page_bytes, capacity_bytes=capacity_bytes)
        self._watched: dict[int, WatchedTensor] = {}  # by where they start
        self._table = PageTable("workspace", self._page_bytes)
        self._mmus = Mmus(machine.spec.pe.mmu, self._table)
        self._mappings: dict[int, list[RangeMapping]] = {}  # of arrays, by where they start
        self._names: dict[PlacedArray, str] = {}  # of arrays, for errors
        self._num_arrays = 0  # that there ever were
        self._build(start_ps=0)

    def _build(self, *, start_ps: int) -> None:
        """Build the device, with a clock that stands at ``start_ps``."""
        self.device: Device = build_device_at(self.machine, self._choice, start_ps=start_ps)
        path = CommandPath(self.device)
        memory = self._memory
        self._launcher = Launcher(
            path, memory.memories, memory.locate, self._mmus, memory.tcm_used_bytes, self._book
        )
        self._has_failed = False  # nothing more can run on the device

    def place(
        self,
        values: np.ndarray[Any, Any],
        pes: Sequence[PeCoord],
        memory: MemoryKind = MemoryKind.HBM,
    ) -> PlacedArray:
        """Put an array into memory, its pages dealt to the memories of these PEs in turn."""
        array = self.reserve(values.shape, dtype_of(values.dtype), pes, memory=memory)
        self.write(array, values)
        return array

    def reserve(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        pes: Sequence[PeCoord],
        turn_pages: int = 1,
        memory: MemoryKind = MemoryKind.HBM,
    ) -> PlacedArray:
        """Memory for an array, ``turn_pages`` neighbouring pages to each PE in turn; all zero."""
        if not pes or turn_pages < 1:
            found = f"{turn_pages} pages a turn over {len(pes)} PEs"
            raise KernelError("workspace", found, "at least one of each", "name the PEs")
        num_bytes = _num_bytes(shape, dtype)
        address = self._space.allocate(max(1, num_bytes), requester="array")
        mappings = []
        for turn, start in enumerate(range(0, num_bytes, turn_pages * self._page_bytes)):
            place = MemoryPlace.of(memory, pes[turn % len(pes)])
            size = min(turn_pages * self._page_bytes, num_bytes - start)
            offset = self._memory.allocator(place).allocate(self._rounded(size), requester="array")
            self._memory.number(place)  # there before a launch that nobody wrote for
            physical = PhysicalByte(self._memory.physical(place, offset))
            virtual = VirtualRange(VirtualByte(address + start), size)
            mappings.append(RangeMapping(virtual, physical))
        self._table.map(mappings)
        self._mappings[address] = mappings
        array = PlacedArray(address, dtype, shape)
        self._names[array] = f"array{self._num_arrays}"
        self._num_arrays += 1
        if self._sanitizer is not None:
            self._watched[address] = self._sanitizer.note_tensor(self._watched_tensor(array))
        return array

    def write(self, array: PlacedArray, values: np.ndarray[Any, Any]) -> None:
        """Fill an array, outside of simulated time."""
        self._check_live(array)
        if values.shape != array.shape or dtype_of(values.dtype) is not array.dtype:
            found = f"{values.dtype}{list(values.shape)} for {array.dtype}{list(array.shape)}"
            raise KernelError("workspace", found, "values of the array's type", "convert them")
        for part, memory, offset in self._parts(array, bytes_of_elements(values, array.dtype)):
            self._memory.memories[memory].storage.write_segments(part, offset, part.size)
        self._note_host(AccessKind.HOST_WRITE, array)

    def free(self, array: PlacedArray) -> None:
        """Give its pages back; who names the array again is refused."""
        self._check_live(array)
        mappings = self._mappings.pop(array.address)
        del self._names[array]
        if self._sanitizer is not None:
            self._sanitizer.note_free(self._watched.pop(array.address), self.device.engine.now_ps)
        self._table.unmap([mapping.virtual for mapping in mappings])
        size = self._page_bytes
        for mapping in mappings:
            virtual = mapping.virtual
            for mmu in self._mmus.values():
                for page in range(virtual.first // size, -(-virtual.end // size)):
                    mmu.state.tlb.pop(VirtualPage(page), None)
            place, offset = self._memory.place_of(mapping.physical)
            self._memory.allocator(place).free(offset, self._rounded(virtual.num_bytes))
        num_bytes = max(1, _num_bytes(array.shape, array.dtype))
        self._space.free(VirtualByte(array.address), num_bytes)

    def _rounded(self, num_bytes: int) -> int:
        """Whole pages, as memories give them out."""
        return -(-num_bytes // self._page_bytes) * self._page_bytes

    def _check_live(self, array: PlacedArray) -> None:
        if array.address not in self._mappings:
            found = f"an array at {array.address:#x} that was freed"
            raise KernelError("workspace", found, "one that is placed", "place it again")

    def describe(self, array: PlacedArray, block_shape: tuple[int, ...]) -> DescriptorArgument:
        """A tensor descriptor over an array, as a host makes it."""
        self._check_live(array)
        if len(block_shape) != len(array.shape):
            found = f"the block {block_shape} for an array of shape {array.shape}"
            raise KernelError("workspace", found, "one extent an axis", "correct the block")
        strides = [1]
        for extent in reversed(array.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return DescriptorArgument(array.argument, array.shape, tuple(strides), block_shape)

    def read(self, array: PlacedArray) -> np.ndarray[Any, Any]:
        """A copy of an array as it is now."""
        self._check_live(array)
        data = np.empty(_num_bytes(array.shape, array.dtype), np.uint8)
        for part, memory, offset in self._parts(array, data):
            self._memory.memories[memory].storage.read_segments(part, offset, part.size)
        self._note_host(AccessKind.HOST_READ, array)
        return elements_of_bytes(data, array.dtype, prod(array.shape)).reshape(array.shape)

    def _parts(
        self, array: PlacedArray, data: np.ndarray[Any, np.dtype[np.uint8]]
    ) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.uint8]], int, int]]:
        """The bytes of an array by where they lie: a part, its memory, the address there."""
        if not data.size:
            return
        done = 0
        for physical, length in self._table.runs(VirtualByte(array.address), data.size):
            memory, offset, _ = self._memory.locate(physical)
            yield data[done : done + length].reshape(1, -1), memory, offset
            done += length

    def launch(
        self,
        kernel: Any,
        *args: Any,
        grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
        pes: Sequence[PeCoord],
        carries_data: bool = True,
        neighbours: Neighbours | None = None,
        **kwargs: Any,
    ) -> LaunchResult:
        """Run a kernel; its programs are dealt to the PEs in turn.

        Programs start at once, without a command that travels. A grid with an extent of 0 has no
        programs. An error ends all programs; arrays keep what memories had served by then, and the
        next launch runs on a device that was built anew, later in simulated time (ADR 0020).
        """
        adapted = adapt_kernel(kernel, language)
        if self._has_failed:
            self._build(start_ps=self.device.engine.now_ps)
        arguments = tuple(map(self._argument, args))
        named = {name: self._argument(value) for name, value in kwargs.items()}
        bound = adapted.bind(arguments, named)
        checked = checked_arguments(adapted, bound)
        # the host's own numbers: a kernel's integers divide as in C
        extents = checked_grid(adapted, grid(dict(bound)) if callable(grid) else grid, self._limits)
        check_pes(adapted, pes)
        shares = [
            Share(pe, ids, checked)
            for pe, ids in zip(pes, dealt(extents, len(pes)), strict=True)
            if ids
        ]
        terms = Terms(
            adapted, extents, carries_data, neighbours, sanitizer=self._sanitizer,
            limits=self._limits,
        )  # fmt: skip
        return self._run(terms, shares)

    def _run(self, terms: Terms, shares: list[Share]) -> LaunchResult:
        engine = self.device.engine
        effects = (
            WatchedEffectLog()
            if self._sanitizer
            else build_effect_log(engine.kind, self._memory.memories)
        )
        hub = Hub(engine, effects.apply)
        start_ps = engine.now_ps
        run = self._launcher.start(hub, effects, terms, shares, _NoGate())
        try:
            with quiet_values():
                hub.run()
                engine.run()
                effects.apply(engine.take_effects())
        except BaseException as error:
            self._end(run, error)
            raise
        for stream in run.streams:
            stream.walker.end()
        if self._sanitizer is not None:
            self._sanitizer.end_launch(run.sanitizer.launch)
        if run.post is not None:  # workspaces install no rings
            for unreceived in run.post.unreceived(terms.kernel.name):
                raise unreceived
        return LaunchResult(start_ps, engine.now_ps, run.counters)

    def _end(self, run: Run, error: BaseException) -> None:
        """End a launch after an error: what memories had served is visible, and nothing else."""
        self._has_failed = True
        if run.post is not None:
            run.post.explain(error)
        apply_served(run.effects, self.device.engine, error)
        for mmu in self._mmus.values():
            mmu.flush()
        if self._sanitizer is not None:
            self._sanitizer.end_launch(run.sanitizer.launch)

    def _watched_tensor(self, array: PlacedArray) -> WatchedTensor:
        """Describe an array to a book or a sanitizer."""
        regions = []
        for mapping in self._mappings[array.address]:
            place, offset = self._memory.place_of(mapping.physical)
            virtual = mapping.virtual
            regions.append(Region(place.pe, offset, virtual.first, virtual.num_bytes, place.kind))
        parts = [TensorPart(array.address, (0,) * len(array.shape), array.shape)]
        bits = item_bits(array.dtype)
        return WatchedTensor(
            self._names[array], array.shape, str(array.dtype), bits, parts, regions
        )

    def _book(self) -> TensorBook:
        return TensorBook(map(self._watched_tensor, self._names))

    def _note_host(self, kind: AccessKind, array: PlacedArray) -> None:
        if self._sanitizer is not None:
            regions = self._watched[array.address].regions
            self._sanitizer.note_host_access(kind, regions, self.device.engine.now_ps)

    def _argument(self, value: Any) -> Any:
        match value:
            case PlacedArray():
                self._check_live(value)
                return value.argument
            case tuple():
                return tuple(map(self._argument, value))
        return adapt_argument(value, language)


class _NoGate:
    """All begin at once, and nobody hears of an end."""

    def begin(self, stream: Stream) -> None: ...
    def end(self, stream: Stream) -> None: ...


def _num_bytes(shape: tuple[int, ...], dtype: DType) -> int:
    return num_bytes_of("array", prod(shape), dtype.device_name)
