"""Finds accesses to memory that are wrong: what they touch, when, and beside whom.

It is told what programs and the host do, changes nothing, and takes no simulated time. Accesses are
told twice: when they are issued, with where they go and what comes before them, and when the memory
has served them, in the order of events.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace

from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryPlace, Segments
from tilewright.memory.sanitizer.access import (
    NOWHERE,
    Access,
    AccessKind,
    Known,
    Launch,
    Past,
    Strand,
    joined,
)
from tilewright.memory.sanitizer.bounds import (
    Unmap,
    find_at_fault,
    find_at_issue,
    find_when_served,
)
from tilewright.memory.sanitizer.finding import Finding, FindingKind, Findings, side_of
from tilewright.memory.sanitizer.history import Conflict, History
from tilewright.memory.sanitizer.shadow import Shadow
from tilewright.memory.sanitizer.tensor import Region, TensorBook, WatchedTensor

HOST = "the host"


class Sanitizer:
    """Watches the memories of one machine for as long as it lives."""

    def __init__(self) -> None:
        self._findings = Findings()
        self._wrong: dict[Access, Finding] = {}  # issued; their times are not known yet
        self.tensors = TensorBook()
        self._shadows: defaultdict[MemoryPlace, Shadow] = defaultdict(Shadow)
        self._history = History(self._shadows)
        self._unmaps: list[Unmap] = []
        self._under_way: set[int] = set()  # launches that the host has not waited for
        self._num_launches = 0
        self._num_strands = 0
        self._released: dict[tuple[MemoryPlace, int], Known] = {}  # by what atomics share
        self._messages: dict[Hashable, Past] = {}  # under way
        self._senders: dict[int, set[int]] = {}  # by strand: from whom it has messages
        self._races: dict[tuple[object, ...], tuple[Finding, Conflict]] = {}  # not told yet

    @property
    def findings(self) -> Findings:
        """All that was found until now."""
        for access in list(self._wrong):
            self._tell_wrong(access)
        self._tell_races()
        return self._findings

    # -- the host --------------------------------------------------------------------------------

    def note_tensor(self, tensor: WatchedTensor) -> WatchedTensor:
        """A tensor has bytes from now on; nobody has written them.

        Its regions say where its bytes lie, replicas at the same virtual addresses. Its virtual
        bytes are those of no other living tensor.
        """
        self.tensors.add(tensor)
        for region in tensor.regions:
            for offset, num_bytes in region.in_memory:
                self._shadows[region.place].forget(offset, num_bytes)
        return tensor

    def note_free(self, tensor: WatchedTensor, at_ps: int) -> None:
        """Its bytes are nobody's from now on."""
        self.tensors.remove(tensor, at_ps)

    def note_unmap(
        self, low: int, high: int, is_for: Callable[[PeCoord], bool], at_ps: int
    ) -> None:
        """These virtual bytes are no longer translated by some PEs; of a tensor that is no more
        nothing else is to be expected.
        """
        tensor = self.tensors.at(low)
        if tensor is None or tensor.freed_ps is not None:
            return
        self._unmaps.append(Unmap(low, high, is_for, at_ps))

    def begin_launch(self, name: str) -> Launch:
        """The host begins something; all that it has waited for comes before."""
        self._num_launches += 1
        launch = Launch(self._num_launches, name, frozenset(self._under_way))
        self._under_way.add(launch.number)
        return launch

    def end_launch(self, launch: Launch) -> None:
        """The host has waited for it, or learned otherwise that all of it is complete."""
        self._under_way.discard(launch.number)
        if not self._under_way:
            self._tell_races()
            self._history.forget()
            self._released.clear()
            self._senders.clear()

    def begin_host_access(
        self,
        launch: Launch,
        kind: AccessKind,
        memory: MemoryPlace,
        offset: int,
        num_bytes: int,
        line: str,
    ) -> Access:
        """A transfer of the host to or from a memory, as a part of what it has begun."""
        strand = self.begin_strand()
        pieces = [(memory, Segments(offset, 1, num_bytes, num_bytes))]
        past = strand.past(NOWHERE)
        place = strand.next_place()
        return Access(kind, launch, strand, place, past, HOST, line, None, 8, pieces)

    def note_host_access(
        self, kind: AccessKind, regions: Iterable[Region], at_ps: int, line: str = ""
    ) -> None:
        """The same, begun and ended at once."""
        launch = self.begin_launch(kind.value)
        is_alone = self._under_way == {launch.number}  # so nothing can race with it
        for region in regions:
            for offset, size in region.in_memory:
                if is_alone and not kind.reads:
                    segments = Segments(offset, 1, size, size)
                    self._shadows[region.place].mark_written(segments)
                    continue
                access = self.begin_host_access(launch, kind, region.place, offset, size, line)
                self.complete(access, at_ps)
        self.end_launch(launch)

    # -- programs --------------------------------------------------------------------------------

    def begin_strand(self) -> Strand:
        """A row of programs that begins with nothing but its launch."""
        self._num_strands += 1
        return Strand(self._num_strands)

    def begin_access(self, access: Access) -> None:
        """It is issued and translated."""
        access.num_unmaps = len(self._unmaps)
        finding = find_at_issue(self.tensors, access)
        if finding is not None:
            access.is_wrong = True
            self._wrong[access] = finding

    def note_fault(self, access: Access, address: int) -> Finding:
        """It cannot be translated; why not."""
        finding = find_at_fault(self.tensors, access, address, self._unmaps)
        self._findings.add(finding)
        return finding

    def note_send(self, message: Hashable, past: Past) -> None:
        """A message goes out after all this; ``message`` names it, also for who receives it."""
        self._messages[message] = past

    def note_receive(self, message: Hashable, receiver: Strand, *, stays: bool = False) -> None:
        """Note that a program has waited for a message: all that it comes after is complete.

        With ``stays`` the program has only looked at it, and will receive it later.
        """
        past = self._messages[message] if stays else self._messages.pop(message)
        self._senders.setdefault(receiver.number, set()).add(past.strand.number)
        receiver.learn_from(past)

    def complete(self, access: Access, at_ps: int) -> None:
        """The memory has served all of it."""
        access.at_ps = at_ps
        if access.is_wrong:
            self._tell_wrong(access)
        elif (finding := find_when_served(access, self._unmaps[access.num_unmaps :])) is not None:
            self._findings.add(finding)
        else:
            if access.kind.reads:
                self._check_written(access)
            for conflict in self._history.note(access):
                self._note_race(conflict)
        if access.kind.writes:
            for place, segments in access.pieces:
                self._shadows[place].mark_written(segments)
        if access.kind.is_atomic:
            self._synchronise(access)
        access.past = None

    def _tell_wrong(self, access: Access) -> None:
        finding = self._wrong.pop(access, None)
        if finding is not None:
            self._findings.add(replace(finding, sides=(side_of(access),)))

    def _check_written(self, access: Access) -> None:
        for place, segments in access.pieces:
            found = self._shadows[place].first_unwritten(segments)
            if found is not None:
                offset, num_bytes = found
                name, element = self._element(place, offset)
                detail = "nobody has written them since the tensor was made"
                sides = (side_of(access),)
                kind = FindingKind.UNINITIALISED
                self._findings.add(Finding(kind, name, element, num_bytes, detail, sides))
                return

    def _note_race(self, conflict: Conflict) -> None:
        """Whether messages go between the two may be known only later."""
        name, element = self._element(conflict.place, conflict.offset)
        sides = (side_of(conflict.earlier), side_of(conflict.later))
        detail = "nothing orders them: the times may be the other way"
        size = conflict.num_bytes
        finding = Finding(FindingKind.RACE, name, element, size, detail, sides)
        known = self._races.get(finding.key)
        if known is not None:
            finding = replace(known[0], count=known[0].count + 1)
        self._races[finding.key] = finding, conflict

    def _tell_races(self) -> None:
        for finding, conflict in self._races.values():
            one, other = conflict.earlier.strand.number, conflict.later.strand.number
            # from one strand to the other, through others or not
            if one in self._all_senders(other) or other in self._all_senders(one):
                detail = "messages go between the programs, but none says that one is complete"
                finding = replace(finding, kind=FindingKind.QUEUE_RACE, detail=detail)
            self._findings.add(finding)
        self._races.clear()

    def _all_senders(self, strand: int) -> set[int]:
        found: set[int] = set()
        new = {strand}
        while new:
            found |= new
            new = {sender for each in new for sender in self._senders.get(each, ())} - found
        return found

    def _element(self, place: MemoryPlace, offset: int) -> tuple[str, str]:
        found = self.tensors.in_memory(place, offset)
        if found is None:
            return "no tensor", f"byte {offset:#x} of {place}"
        tensor, address = found
        return str(tensor), tensor.element_at(address)

    def _synchronise(self, access: Access) -> None:
        """Who meets an atomic at the same element learns what came before the others there."""
        before: Known = {} if access.past is None else access.past.known
        mine = joined(before, {access.strand.number: 1 << access.place})
        learned: Known = {}
        for key in _elements(access):
            there = self._released.get(key, {})
            if access.kind is not AccessKind.ATOMIC_STORE:
                learned = joined(learned, there)
            if access.kind is AccessKind.ATOMIC:
                self._released[key] = joined(there, mine)
            elif access.kind is AccessKind.ATOMIC_STORE:
                self._released[key] = mine
        access.strand.acquired[access.place] = learned


def _elements(access: Access) -> Iterable[tuple[MemoryPlace, int]]:
    item_bytes = max(1, access.item_bits // 8)
    for memory, (address, num_segments, num_bytes, stride) in access.pieces:
        for segment in range(num_segments):
            start = address + segment * stride
            for offset in range(0, num_bytes, item_bytes):
                yield memory, start + offset
