"""Starts kernels on the PEs of one device: terms of a launch, its rings, its programs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from tilewright.device.command import CommandPath
from tilewright.device.dma import Access, ChannelDeal, num_channels
from tilewright.device.ipcq import Ring, RingPool, check_room
from tilewright.device.mmu import Mmu
from tilewright.device.pe import Pe
from tilewright.engine.hub import Hub
from tilewright.errors import KernelError
from tilewright.executor.address import Translator
from tilewright.executor.effect import EffectLog
from tilewright.executor.error import explained
from tilewright.executor.kernel_program import program_class
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post, build_post
from tilewright.executor.program import Program
from tilewright.executor.run import Memory, Run, Terms
from tilewright.executor.sanitize.program import WatchedProgram, tagged_arguments, watch_launch
from tilewright.executor.stream import Stream
from tilewright.language.executor import enter_program
from tilewright.language.kernel import Kernel, seen_by
from tilewright.machine.coords import PeCoord
from tilewright.memory.sanitizer.tensor import TensorBook


@dataclass(frozen=True, slots=True)
class Share:
    """What one PE does in a launch: programs by their ids, and the arguments that it sees."""

    pe: PeCoord
    ids: Sequence[tuple[int, ...]]
    arguments: Mapping[str, Any]  # checked


class Gatekeeper(Protocol):
    """Says when the programs of a stream may begin, and hears when all are issued.

    Both are called in the stream's own program of the hub, which may wait.
    """

    def begin(self, stream: Stream) -> None: ...
    def end(self, stream: Stream) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamPrograms:
    """What one stream of a PE does in a launch."""

    shared: Run
    stream: Stream
    translator: Translator
    arguments: Mapping[str, Any]
    ids: Sequence[tuple[int, ...]]
    gate: Gatekeeper

    def run(self) -> None:
        run, stream = self.shared, self.stream
        with np.errstate(all="ignore"):  # each greenlet has NumPy's state of its own
            self.gate.begin(stream)
            self.translator.num_streams += 1
            with explained():
                self._run_programs()
                run.counters.commands += stream.issuer.num_commands
                run.count_accesses()
                self.translator.count_pages()
                run.counters.spilled_bytes += stream.issuer.spilled_bytes
                stream.hand_over()
            posts = run.installed.values() if run.post is None else (run.post,)
            for post in dict.fromkeys(posts):
                post.release(stream)
            self.gate.end(stream)
            self.translator.num_streams -= 1

    def _run_programs(self) -> None:
        """Call the kernel for each program in its turn."""
        program, call = self._begin(self.ids[0])
        for turn, ids in enumerate(self.ids):
            if turn and not program.begin_anew(ids):
                program.end()
                program, call = self._begin(ids)
            call()
        program.end()

    def _begin(self, ids: tuple[int, ...]) -> tuple[Program, Callable[[], Any]]:
        """Return a program and the kernel with what that sees.

        Arguments are by place where they can be, since names take longer.
        """
        make = program_class(self.shared) if self.shared.sanitizer is None else WatchedProgram
        program = make(self.shared, self.stream, self.translator, ids)
        enter_program(program)
        function = self.shared.terms.kernel.function
        named = seen_by(program, self.arguments)
        code = function.__code__
        placed = [named.pop(name) for name in code.co_varnames[: code.co_argcount]]
        return program, partial(function, *placed, **named)


@dataclass(eq=False, repr=False)
class Launcher:
    """Runs kernels on the PEs of one device, over the memories that it is given."""

    path: CommandPath
    memories: Sequence[Memory]
    locate: Callable[[int], tuple[int, int, int]]
    mmus: Mapping[PeCoord, Mmu]
    tcm_used_bytes: Callable[[PeCoord], int]  # by tensors
    tensors: Callable[[], TensorBook]  # makes a book of those that live, for the text of an error

    def __post_init__(self) -> None:
        self.device = self.path.device
        self._translators: dict[PeCoord, Translator] = {}
        self._num_posts = 0
        self._rings = RingPool(self.device)

    def start(
        self, hub: Hub, effects: EffectLog, terms: Terms, shares: Sequence[Share], gate: Gatekeeper
    ) -> Run:
        """Spawn the programs of each PE; they run when the hub does."""
        engine = self.device.engine
        run = Run(self.device, hub, self.memories, effects, self.tensors, terms)
        if terms.sanitizer is not None:
            run.sanitizer = watch_launch(terms.sanitizer, terms.kernel.name, run)
            shares = [
                replace(share, arguments=tagged_arguments(run.sanitizer, share.arguments))
                for share in shares
            ]
        parts = []
        for share in shares:
            pe = self._beside_tensors(share.pe)
            if terms.resident > 1:  # each program has its part of registers and TCM
                near_bytes = pe.issuer.near_bytes // terms.resident
                far_bytes = pe.issuer.far_bytes // terms.resident
                issuer = replace(pe.issuer, near_bytes=near_bytes, far_bytes=far_bytes)
                pe = replace(pe, issuer=issuer)
            for turn in range(min(terms.resident, len(share.ids))):
                stream = Stream(hub, engine, pe)
                run.streams.append(stream)
                translator, arguments = self._translator(share.pe), share.arguments
                ids = share.ids[turn :: terms.resident]
                parts.append(StreamPrograms(run, stream, translator, arguments, ids, gate))
        for part in parts:
            name = f"{terms.kernel.name} on {part.stream.pe.name}"
            program = hub.spawn(part.run, name=name)
            run.owners[program.number] = part.stream.pe.coord
        run.post = None if terms.post is None else self._renewed(terms.post)
        run.installed = {pe: self._renewed(post) for pe, post in terms.installed.items()}
        if terms.neighbours is not None:
            pes = {stream.pe.coord: stream.pe for stream in run.streams}
            run.post = self._post(terms.neighbours, pes)
        return run

    def check_room(self, pes: Iterable[PeCoord]) -> None:
        """Refuse a launch on PEs whose TCM has no byte left for a program."""
        for coord in pes:
            self._beside_tensors(coord)

    def _beside_tensors(self, coord: PeCoord) -> Pe:
        """A PE as programs have it beside tensors in its TCM."""
        pe, used_bytes = self.path.pe(coord), self.tcm_used_bytes(coord)
        if not used_bytes:
            return pe
        far_bytes = pe.issuer.far_bytes - used_bytes
        if far_bytes < 1:
            found = f"{used_bytes} of {pe.issuer.far_bytes} bytes of the TCM taken by tensors"
            fix = "free a tensor there, or place it in another memory"
            raise KernelError(pe.name, found, "room for the tiles of programs", fix)
        return replace(pe, issuer=replace(pe.issuer, far_bytes=far_bytes))

    def install(self, neighbours: Neighbours, *, is_exclusive: bool = False) -> Post:
        """Build rings that launches on these PEs share; none of them was used before."""
        post = self._post(neighbours, {pe: self.path.pe(pe) for pe in neighbours.table})
        post.is_exclusive = is_exclusive
        return post

    def _renewed(self, post: Post) -> Post:
        """Return the installed rings, empty if an error has ended the device they were built on."""
        if post.built_by is not self:
            post.renew(self.install(post.neighbours))
        return post

    def _post(self, neighbours: Neighbours, pes: Mapping[PeCoord, Pe]) -> Post:
        """Build the rings of a launch, or of several."""
        self._num_posts += 1
        ring, number = neighbours.ring, self._num_posts

        rings_of = Counter(
            receiver for directions in neighbours.table.values() for receiver in directions.values()
        )

        built: list[Ring] = []

        def build(name: str, sender: Pe, receiver: Pe, address: int) -> Ring:
            check_room(self.device, ring, name, rings_of[receiver.coord], address)
            own_name = f"{name} of launch {number}"
            built.append(self._rings.build(name, own_name, ring, sender, receiver, address))
            return built[-1]

        self._rings.give_back(())
        try:
            return build_post(neighbours, pes, build, self)
        except KernelError:
            self._rings.give_back(built)
            raise

    def give_back(self, post: Post) -> None:
        """Let later rings use what rings have that no launch uses any more."""
        if post.built_by is self:
            self._rings.give_back(box.ring for box in post.boxes)

    def _translator(self, coord: PeCoord) -> Translator:
        if coord not in self._translators:
            machine = self.device.machine
            deal = ChannelDeal(*(num_channels(machine, coord, access) for access in Access))
            self._translators[coord] = Translator(self.mmus[coord], self.locate, deal)
        return self._translators[coord]


def check_pes(kernel: Kernel, pes: Sequence[PeCoord]) -> None:
    where, fix = f"kernel {kernel.name!r}", "name each PE once"
    if not pes:
        raise KernelError(where, "no PEs to run on", "at least one", fix)
    seen: set[PeCoord] = set()
    for pe in pes:
        if pe in seen:
            raise KernelError(where, f"{pe} twice among the PEs", "different PEs", fix)
        seen.add(pe)
