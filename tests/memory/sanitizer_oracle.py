"""Races by their definition: every event, every order between events, every byte.

A script is what a few strands do, in the order in which events happen. The oracle keeps the whole
graph of events and asks for each pair of accesses whether a path leads from the end of one to the
start of the other; the sanitizer is run on the same script.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryKind, MemoryPlace, Segments
from tilewright.memory.sanitizer.access import NOWHERE, Access, AccessKind, Places, Strand
from tilewright.memory.sanitizer.finding import FindingKind
from tilewright.memory.sanitizer.sanitizer import Sanitizer

__all__ = ("Do", "Oracle", "Watched", "clipped", "scripts")

HOME = PeCoord(0, 0, 0)
PLACE = MemoryPlace(MemoryKind.HBM, HOME)
NUM_BYTES = 24


class Do(NamedTuple):
    """One event of a strand.

    begin: an access begins, ``number`` of the strand's, ``after`` some of its earlier ones.
    end: its access ``number`` is complete.
    wait: the program waits for its access ``number``.
    send: a message to strand ``number`` that comes ``after`` some accesses.
    receive: the oldest message from strand ``number`` has been waited for.
    """

    what: str
    strand: int
    number: int
    after: tuple[int, ...] = ()
    kind: AccessKind = AccessKind.LOAD
    segments: Segments = Segments(0, 1, 1, 1)


@dataclass
class _Draft:
    """What a strand has under way while a script is drawn."""

    num_accesses: int = 0
    under_way: list[int] = field(default_factory=list)
    complete: list[int] = field(default_factory=list)


KINDS = (AccessKind.LOAD, AccessKind.LOAD, AccessKind.STORE, AccessKind.STORE, AccessKind.ATOMIC)


@st.composite
def scripts(draw: st.DrawFn, kinds: tuple[AccessKind, ...] = KINDS) -> list[Do]:
    """Only what can happen: a message is received after it was sent, an access ends once, after
    those that it comes after, and a message is there when what it comes after is complete.
    """
    count = draw(st.integers(2, 4))
    strands = [_Draft() for _ in range(count)]
    mail: dict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    script: list[Do] = []
    needs: dict[tuple[int, int], tuple[int, ...]] = {}
    for _ in range(draw(st.integers(4, 24))):
        me = draw(st.integers(0, count - 1))
        draft = strands[me]
        what = draw(st.sampled_from(("begin", "begin", "end", "end", "wait", "send", "receive")))
        other = draw(st.integers(0, count - 1))
        chosen = draw(st.lists(st.sampled_from(range(6)), max_size=2, unique=True))
        after = tuple(place for place in chosen if place < draft.num_accesses)
        if what == "begin":
            event = Do(
                what, me, draft.num_accesses, after, draw(st.sampled_from(kinds)), _segments(draw)
            )
            script.append(event := event._replace(after=_in_order(script, event)))
            needs[me, draft.num_accesses] = event.after
            draft.under_way.append(draft.num_accesses)
            draft.num_accesses += 1
        elif what == "end" and draft.under_way:
            ready = [n for n in draft.under_way if set(needs[me, n]) <= set(draft.complete)]
            number = draw(st.sampled_from(ready))
            draft.under_way.remove(number)
            draft.complete.append(number)
            script.append(Do(what, me, number))
        elif what == "wait" and draft.complete:
            script.append(Do(what, me, draw(st.sampled_from(draft.complete))))
        elif what == "send" and other != me:
            mail[me, other].append(after)
            script.append(Do(what, me, other, after))
        elif what == "receive" and mail[other, me]:
            is_there = set(mail[other, me][0]) <= set(strands[other].complete)
            script += [Do(what, me, other)] if is_there else []
            del mail[other, me][:is_there]
    return script


def _in_order(script: list[Do], event: Do) -> tuple[int, ...]:
    """A program's accesses to the same bytes come one after the other, if one of them writes."""
    before = {
        other.number
        for other in script
        if (other.what, other.strand) == ("begin", event.strand)
        and (other.kind.writes or event.kind.writes)
        and bytes_of(other.segments) & bytes_of(event.segments)
    }
    return tuple(sorted(before.union(event.after)))


def clipped(script: list[Do], byte: int) -> list[Do]:
    """The same as far as one byte goes: accesses elsewhere each have a byte of their own."""
    events = []
    for number, event in enumerate(script):
        if event.what == "begin":
            here = byte if byte in bytes_of(event.segments) else NUM_BYTES + number
            event = event._replace(segments=Segments(here, 1, 1, 1))
        events.append(event)
    return events


def _segments(draw: st.DrawFn) -> Segments:
    size = draw(st.integers(1, 6))
    stride = draw(st.integers(size, 8))
    count = draw(st.integers(1, 3))
    room = NUM_BYTES - (count - 1) * stride - size
    return Segments(draw(st.integers(0, room)), count, size, stride)


def bytes_of(segments: Segments) -> set[int]:
    return {
        segments.address + place * segments.stride_bytes + offset
        for place in range(segments.num_segments)
        for offset in range(segments.segment_bytes)
    }


Pair = tuple[tuple[int, int], tuple[int, int]]


class Oracle:
    """Which pairs of accesses of different strands race, and on which bytes."""

    def __init__(self, script: list[Do]) -> None:
        self._before: dict[object, set[object]] = defaultdict(set)  # all events before an event
        self._program: dict[int, set[object]] = defaultdict(set)  # what a program knows by now
        self._mail: dict[tuple[int, int], list[set[object]]] = defaultdict(list)
        self._started: dict[tuple[int, int], Do] = {}
        self._cells: dict[int, set[object]] = defaultdict(set)  # what atomics have left, by byte
        self._ends: list[tuple[int, int]] = []
        for event in script:
            self._play(event)
        self.races = self._races()

    def _play(self, event: Do) -> None:
        me = event.strand
        key = (me, event.number)
        known = self._program[me]
        if event.what == "begin":
            self._started[key] = event
            self._before["start", key] = known | self._closed(me, event.after)
        elif event.what == "end":
            self._end(key)
        elif event.what == "wait":
            known |= self._closed(me, (event.number,))
        elif event.what == "send":
            self._mail[me, event.number].append(known | self._late(me, event.after))
        else:
            known |= self._resolved(self._mail[event.number, me].pop(0))

    def _late(self, strand: int, places: tuple[int, ...]) -> set[object]:
        """Ends that are still to come: what is before them is asked for when they are there."""
        return {("end", (strand, place)) for place in places}

    def _closed(self, strand: int, places: tuple[int, ...]) -> set[object]:
        return self._resolved(self._late(strand, places))

    def _resolved(self, events: set[object]) -> set[object]:
        found = set(events)
        for event in events:
            found |= self._before[event]
        return found

    def _end(self, key: tuple[int, int]) -> None:
        started = self._started[key]
        before = self._resolved(self._before["start", key])
        self._before["start", key] = before
        end = ("end", key)
        learned: set[object] = set()
        if started.kind is AccessKind.ATOMIC:
            for byte in bytes_of(started.segments):
                learned |= self._cells[byte]
                self._cells[byte] = self._cells[byte] | before | {end}
        self._before[end] = before | learned
        self._ends.append(key)

    def _races(self) -> dict[Pair, set[int]]:
        found: dict[Pair, set[int]] = {}
        for place, later in enumerate(self._ends):
            for earlier in self._ends[:place]:
                first, second = self._started[earlier], self._started[later]
                shared = bytes_of(first.segments) & bytes_of(second.segments)
                if earlier[0] == later[0] or not shared:
                    continue
                if not (first.kind.writes or second.kind.writes):
                    continue
                if first.kind.is_atomic and second.kind.is_atomic:
                    continue
                if ("end", earlier) not in self._before["start", later]:
                    found[earlier, later] = shared
        return found


class Watched:
    """The same script as the sanitizer sees it; every access has a line of its own."""

    def __init__(self, script: list[Do]) -> None:
        self._sanitizer = Sanitizer()
        self._launch = self._sanitizer.begin_launch("script")
        self._strands: dict[int, Strand] = defaultdict(self._sanitizer.begin_strand)
        self._accesses: dict[tuple[int, int], Access] = {}
        self._closed: dict[tuple[int, int], Places] = {}  # of accesses, with all before them
        self._mail: dict[tuple[int, int], list[int]] = defaultdict(list)  # when they were sent
        for time, event in enumerate(script):
            self._play(event, time)

    @property
    def races(self) -> set[Pair]:
        """Between different strands."""
        findings = self._sanitizer.findings
        assert not findings.num_left_out
        pairs = {
            tuple(tuple(map(int, line.split())) for line in finding.lines)
            for finding in findings
            if finding.kind in (FindingKind.RACE, FindingKind.QUEUE_RACE)
        }
        return {(one, other) for one, other in pairs if one[0] != other[0]}  # type: ignore[misc]

    def _play(self, event: Do, time: int) -> None:
        me = self._strands[event.strand]
        if event.what == "begin":
            self._begin(event, me)
        elif event.what == "end":
            self._sanitizer.complete(self._accesses[event.strand, event.number], time)
        elif event.what == "wait":
            me.learn(self._closed[event.strand, event.number])
        elif event.what == "send":
            self._mail[event.strand, event.number].append(time)
            self._sanitizer.note_send(time, me.past(self._after(event)))
        else:
            sent = self._mail[event.number, event.strand].pop(0)
            self._sanitizer.note_receive(sent, me)

    def _after(self, event: Do) -> Places:
        found = NOWHERE
        for place in event.after:
            found |= self._closed[event.strand, place]
        return found

    def _begin(self, event: Do, me: Strand) -> None:
        past = me.past(self._after(event))
        place = me.next_place()
        if event.kind.is_atomic:
            me.atomics |= 1 << place
        self._closed[event.strand, place] = self._after(event) | Places.one(place)
        line = f"{event.strand} {place}"
        pieces = [(PLACE, event.segments)]
        self._accesses[event.strand, place] = Access(
            event.kind, self._launch, me, place, past, "", line, HOME, 8, pieces
        )
