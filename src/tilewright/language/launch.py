"""Programs of a kernel on PEs: who runs where, one after the other, and what a run was."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tilewright.device.build import Device
from tilewright.device.mmu import Mmu
from tilewright.device.pe import Pe, build_pe
from tilewright.engine.hub import Hub
from tilewright.errors import KernelError, TilewrightError
from tilewright.language.current import enter_program
from tilewright.language.dtype import DType
from tilewright.language.effect import EffectLog
from tilewright.language.kernel import Kernel
from tilewright.language.program import Program
from tilewright.language.run import Counters, Memory, Run
from tilewright.language.scalar import strong_scalar
from tilewright.language.stream import Stream
from tilewright.language.tensor_pointer import TensorDescriptor
from tilewright.language.translate import Translator
from tilewright.machine.coords import PeCoord

__all__ = ("ArrayArgument", "DescriptorArgument", "LaunchResult", "Launcher")

COLLECTION_THRESHOLD = 10**6


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array in virtual memory, as a kernel gets it: where it starts and what it holds."""

    address: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class DescriptorArgument:
    """A tensor descriptor that the host has made over an array."""

    array: ArrayArgument
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """Times are of the device's clock: from the first command to the end of the last."""

    start_ps: int
    end_ps: int
    counters: Counters

    @property
    def latency_ps(self) -> int:
        return self.end_ps - self.start_ps


class Launcher:
    """Runs kernels on the PEs of one device, over the memories that it is given."""

    def __init__(
        self,
        device: Device,
        memories: Sequence[Memory],
        locate: Callable[[int], tuple[int, int]],
        mmu_of: Callable[[PeCoord], Mmu],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.device = device
        self._memories = memories
        self._locate = locate
        self._mmu_of = mmu_of
        self._functions = functions
        self._pes: dict[PeCoord, Pe] = {}
        self._translators: dict[PeCoord, Translator] = {}

    def launch(
        self,
        kernel: Kernel,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
        pes: Sequence[PeCoord],
        carries_data: bool = True,
    ) -> LaunchResult:
        """Programs are dealt to PEs in turn; those of a PE run one after the other."""
        arguments = kernel.bind(args, kwargs)
        extents = tuple(grid(arguments)) if callable(grid) else tuple(grid)
        log = EffectLog()
        engine = self.device.engine
        hub = Hub(engine, log.apply)
        run = Run(self.device, hub, self._memories, log, self._functions, carries_data)
        start_ps = engine.now_ps
        places = list(product(*(range(extent) for extent in reversed(extents))))
        for turn, coord in enumerate(pes):
            ids = [tuple(reversed(place)) for place in places[turn :: len(pes)]]
            if ids:
                stream = Stream(hub, engine, self._pe(coord))
                run.streams.append(stream)
                translator = self._translator(coord)
                body = _Body(run, stream, translator, kernel, arguments, ids, extents)
                hub.spawn(body.run, name=f"{kernel.name} on {stream.pe.name}")
        with np.errstate(all="ignore"), _rare_collections():
            hub.run()
            engine.run()
            log.apply(engine.take_effects())
        return LaunchResult(start_ps, engine.now_ps, run.counters)

    def _translator(self, coord: PeCoord) -> Translator:
        if coord not in self._translators:
            self._translators[coord] = Translator(self._mmu_of(coord), self._locate)
        return self._translators[coord]

    def _pe(self, coord: PeCoord) -> Pe:
        if coord not in self._pes:
            self._pes[coord] = build_pe(self.device, coord)
        return self._pes[coord]


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Programs leave many objects that stay and few cycles: looking for these costs a fifth."""
    thresholds = gc.get_threshold()
    gc.set_threshold(COLLECTION_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@dataclass(frozen=True, slots=True)
class _Body:
    """What one PE does in a launch."""

    shared: Run
    stream: Stream
    translator: Translator
    kernel: Kernel
    arguments: dict[str, Any]
    ids: list[tuple[int, ...]]
    grid: tuple[int, ...]

    def run(self) -> None:
        addresses, others = self._arguments()
        for ids in self.ids:
            program = Program(
                self.shared, self.stream, self.translator, self.kernel.name, ids, self.grid
            )
            enter_program(program)
            try:
                pointers = {
                    name: _pointed(program, argument) for name, argument in addresses.items()
                }
                self.kernel.function(**pointers, **others)
            except TilewrightError:
                raise
            except Exception as error:
                error.add_note(f"in {program}, at {self.shared.hub.now_ps} ps")
                raise
            program.end()
        self.shared.counters.commands += self.stream.issuer.num_commands
        self.shared.counters.spilled_bytes += self.stream.issuer.spilled_bytes
        self.stream.hand_over()

    def _arguments(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays, of which each program gets its own pointers, and what all programs share."""
        addresses = {
            name: value
            for name, value in self.arguments.items()
            if isinstance(value, ArrayArgument | DescriptorArgument)
        }
        others = {
            name: self._shared(name, value)
            for name, value in self.arguments.items()
            if name not in addresses
        }
        return addresses, others

    def _shared(self, name: str, value: Any) -> Any:
        if name in self.kernel.constants:
            return value
        match value:
            case None | bool() | str() | tuple() | DType():
                return value
            case int() | float():
                return strong_scalar(value)
            case np.integer() | np.floating():
                return strong_scalar(value.item())
        found = f"{name} = {value!r} of type {type(value).__name__}"
        fix = "pass an array, a number, or mark the parameter as tl.constexpr"
        raise KernelError(self.kernel.name, found, "an argument that a kernel can take", fix)


def _pointed(program: Program, argument: ArrayArgument | DescriptorArgument) -> Any:
    match argument:
        case ArrayArgument(address=address, dtype=dtype):
            return program.pointers(address, dtype)
        case DescriptorArgument(array=array):
            base = program.pointers(array.address, array.dtype)
            sizes = (argument.shape, argument.strides, argument.block_shape)
            return TensorDescriptor(program, base, *sizes)
