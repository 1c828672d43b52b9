"""Starts kernels on the PEs of one device, and builds the rings that their programs use."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.device.build import Device
from tilewright.device.dma import Access, ChannelDeal, num_channels
from tilewright.device.ipcq import Ring, RingPool, check_room
from tilewright.device.mmu import Mmu
from tilewright.device.pe import Pe
from tilewright.engine.hub import Hub
from tilewright.errors import KernelError
from tilewright.executor.access.translate import Translator
from tilewright.executor.effect import EffectLog
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post, build_post
from tilewright.executor.run import Memory, Run
from tilewright.executor.sanitize.program import tagged_arguments, watch_launch
from tilewright.executor.stream import Stream
from tilewright.executor.stream_programs import StreamPrograms
from tilewright.executor.terms import Gatekeeper, Share, Terms
from tilewright.language.kernel import Kernel
from tilewright.machine.coords import PeCoord
from tilewright.memory.sanitizer.tensor import TensorBook

MmuOf = Callable[[PeCoord], Mmu]
"""The MMU of a PE."""


class Launcher:
    """Runs kernels on the PEs of one device, over the memories that it is given."""

    def __init__(
        self,
        device: Device,
        memories: Sequence[Memory],
        locate: Callable[[int], tuple[int, int, int]],
        mmu_of: MmuOf,
        functions: Mapping[str, Callable[..., Any]],
        pe_of: Callable[[PeCoord], Pe],
        tcm_used_bytes: Callable[[PeCoord], int],
        tensors: Callable[[], TensorBook],
    ) -> None:
        self.device = device
        self._memories = memories
        self._locate = locate
        self._mmu_of = mmu_of
        self._functions = functions
        self._pe_of = pe_of
        self._tcm_used_bytes = tcm_used_bytes  # by tensors
        self._tensors = tensors  # a new book of those that live, for the text of an error
        self._translators: dict[PeCoord, Translator] = {}
        self._num_posts = 0
        self._rings = RingPool(device)

    def start(
        self, hub: Hub, effects: EffectLog, terms: Terms, shares: Sequence[Share], gate: Gatekeeper
    ) -> Run:
        """Spawn the programs of each PE; they run when the hub does."""
        engine = self.device.engine
        run = Run(
            self.device,
            hub,
            self._memories,
            effects,
            self._functions,
            self._tensors,
            terms.carries_data,
            limits=terms.limits,
            replicas=terms.replicas,
            observer=terms.observer,
        )
        if terms.sanitizer is not None:
            run.sanitizer = watch_launch(terms.sanitizer, terms.kernel.name, run)
            shares = [
                replace(share, arguments=tagged_arguments(run.sanitizer, share.arguments))
                for share in shares
            ]
        parts = []
        for share in shares:
            pe = self._beside_tensors(share.pe)
            for turn in range(min(terms.resident, len(share.ids))):
                stream = Stream(hub, engine, _part_of(pe, terms.resident))
                run.streams.append(stream)
                translator, arguments = self._translator(share.pe), share.arguments
                ids = share.ids[turn :: terms.resident]
                parts.append(StreamPrograms(run, stream, translator, terms, arguments, ids, gate))
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
        pe, used_bytes = self._pe_of(coord), self._tcm_used_bytes(coord)
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
        post = self._post(neighbours, {pe: self._pe_of(pe) for pe in neighbours.table})
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
            self._translators[coord] = Translator(self._mmu_of(coord), self._locate, deal)
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


def _part_of(pe: Pe, resident: int) -> Pe:
    """A PE as one of its resident programs has it."""
    if resident == 1:
        return pe
    issuer = replace(
        pe.issuer,
        near_bytes=pe.issuer.near_bytes // resident,
        far_bytes=pe.issuer.far_bytes // resident,
    )
    return replace(pe, issuer=issuer)
