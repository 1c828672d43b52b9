"""Programs of a kernel on PEs: who runs where, one after the other, and what a run was."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tilewright.device.build import Device
from tilewright.device.ipcq import Ring, build_ring, check_room
from tilewright.device.mmu import Mmu
from tilewright.device.pe import Pe, build_pe
from tilewright.engine.hub import Hub
from tilewright.engine.message import first_line
from tilewright.errors import KernelError
from tilewright.language.argument import checked_arguments, seen_by
from tilewright.language.current import enter_program
from tilewright.language.effect import EffectLog
from tilewright.language.kernel import Kernel
from tilewright.language.location import explained
from tilewright.language.meaning.blas import one_blas_thread
from tilewright.language.message import Neighbours, Post, build_post
from tilewright.language.program import Program
from tilewright.language.run import Counters, Memory, Run
from tilewright.language.stream import Stream
from tilewright.language.translate import Translator
from tilewright.machine.coords import PeCoord

__all__ = ("LaunchResult", "Launcher")

COLLECTION_THRESHOLD = 10**6
MAX_GRID_AXES = 3


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
        self._end_reason: str | None = None
        self._num_posts = 0

    def launch(
        self,
        kernel: Kernel,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
        pes: Sequence[PeCoord],
        carries_data: bool = True,
        neighbours: Neighbours | None = None,
    ) -> LaunchResult:
        """Programs are dealt to PEs in turn; those of a PE run one after the other.

        A grid with an extent of 0 has no programs. After an error inside a run the device has work
        that nobody finishes, so it takes no other launch.
        """
        self._check_usable(kernel)
        bound = kernel.bind(args, kwargs)
        arguments = checked_arguments(kernel, bound)
        # the host's own numbers: a kernel's integers divide as in C
        extents = _checked_grid(kernel, grid(dict(bound)) if callable(grid) else grid)
        _check_pes(kernel, pes)
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
        if neighbours is not None:
            run.post = self._post(neighbours, run)
        try:
            with np.errstate(all="ignore"), one_blas_thread(), _rare_collections():
                hub.run()
                engine.run()
                log.apply(engine.take_effects())
        except BaseException as error:
            self._end_reason = first_line(error)
            raise
        return LaunchResult(start_ps, engine.now_ps, run.counters)

    def _post(self, neighbours: Neighbours, run: Run) -> Post:
        """The rings of a launch, none of them used before."""
        self._num_posts += 1
        ring, launch = neighbours.ring, self._num_posts

        rings_of = Counter(
            receiver for directions in neighbours.table.values() for receiver in directions.values()
        )

        def build(name: str, sender: Pe, receiver: Pe, address: int) -> Ring:
            check_room(self.device, ring, name, rings_of[receiver.coord], address)
            return build_ring(
                self.device, f"{name} of launch {launch}", ring, sender, receiver, address
            )

        return build_post(neighbours, {stream.pe.coord: stream.pe for stream in run.streams}, build)

    def _check_usable(self, kernel: Kernel) -> None:
        if self._end_reason is not None:
            found = f"a device whose last run ended with {self._end_reason}"
            fix = "build the device and place its arrays anew"
            raise KernelError(f"kernel {kernel.name!r}", found, "one that can go on", fix)

    def _translator(self, coord: PeCoord) -> Translator:
        if coord not in self._translators:
            self._translators[coord] = Translator(self._mmu_of(coord), self._locate)
        return self._translators[coord]

    def _pe(self, coord: PeCoord) -> Pe:
        if coord not in self._pes:
            self._pes[coord] = build_pe(self.device, coord)
        return self._pes[coord]


def _checked_grid(kernel: Kernel, grid: Any) -> tuple[int, ...]:
    extents = tuple(grid) if isinstance(grid, list | tuple) else (grid,)
    is_grid = 1 <= len(extents) <= MAX_GRID_AXES and all(
        isinstance(extent, int | np.integer) and not isinstance(extent, bool) and extent >= 0
        for extent in extents
    )
    if not is_grid:
        expected = f"1 to {MAX_GRID_AXES} integers of at least 0"
        found = f"the grid {grid!r}"
        raise KernelError(f"kernel {kernel.name!r}", found, expected, "correct the grid")
    return tuple(map(int, extents))


def _check_pes(kernel: Kernel, pes: Sequence[PeCoord]) -> None:
    where, fix = f"kernel {kernel.name!r}", "name each PE once"
    if not pes:
        raise KernelError(where, "no PEs to run on", "at least one", fix)
    for place, pe in enumerate(pes):
        if pe in pes[:place]:
            raise KernelError(where, f"{pe} twice among the PEs", "different PEs", fix)


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
        with np.errstate(all="ignore"):  # each greenlet has NumPy's state of its own
            self._run()

    def _run(self) -> None:
        for ids in self.ids:
            program = Program(
                self.shared, self.stream, self.translator, self.kernel.name, ids, self.grid
            )
            enter_program(program)
            with explained(program):
                self.kernel.function(**seen_by(program, self.arguments))
                program.end()
        self.shared.counters.commands += self.stream.issuer.num_commands
        self.shared.counters.spilled_bytes += self.stream.issuer.spilled_bytes
        with explained(program):
            self.stream.hand_over()
