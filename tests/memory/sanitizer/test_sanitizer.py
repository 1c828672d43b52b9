"""The sanitizer without a language: the host's launches, tensors and transfers."""

import pickle

import pytest

from tilewright.errors import OutOfMemoryError, SanitizerError
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryKind, MemoryPlace, Segments
from tilewright.memory.allocator import QuarantinedSpace
from tilewright.memory.sanitizer.access import NOWHERE, Access, AccessKind, Launch
from tilewright.memory.sanitizer.finding import Finding, FindingKind, Findings
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.memory.sanitizer.tensor import Region, TensorPart, WatchedTensor
from tilewright.records.run.part import FlaggedAccess

HERE = PeCoord(0, 0, 0)
THERE = PeCoord(0, 0, 1)
BASE = 2**32
SIZE = 64


def tensor(
    sanitizer: Sanitizer, name: str = "x", base: int = BASE, offset: int = 0
) -> WatchedTensor:
    regions = [Region(HERE, offset, base, SIZE)]
    parts = [TensorPart(base, (0,), (SIZE // 4,))]
    return sanitizer.note_tensor(WatchedTensor(name, (SIZE // 4,), "f32", 32, parts, regions))


def access(
    sanitizer: Sanitizer,
    launch: Launch,
    kind: AccessKind,
    tensor: WatchedTensor,
    start: int = 0,
    num_bytes: int = SIZE,
    pe: PeCoord = HERE,
) -> Access:
    """One of a strand of its own, issued."""
    strand = sanitizer.begin_strand()
    past = strand.past(NOWHERE)
    region = tensor.regions[0]
    pieces = [
        (
            MemoryPlace(MemoryKind.HBM, HERE),
            Segments(region.offset + start, 1, num_bytes, num_bytes),
        )
    ]
    spans = [Segments(region.address + start, 1, num_bytes, num_bytes)]
    place = strand.next_place()
    made = Access(
        kind, launch, strand, place, past, launch.name, kind.value, pe, 32, pieces, spans, tensor
    )
    sanitizer.begin_access(made)
    return made


def kinds(sanitizer: Sanitizer) -> list[FindingKind]:
    return [finding.kind for finding in sanitizer.findings]


def written(sanitizer: Sanitizer, name: str = "x") -> WatchedTensor:
    made = tensor(sanitizer, name)
    sanitizer.note_host_access(AccessKind.HOST_WRITE, made.regions, at_ps=0)
    return made


def test_launches_that_were_waited_for_come_one_after_the_other() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    for number in range(2):
        launch = sanitizer.begin_launch(f"launch {number}")
        sanitizer.complete(access(sanitizer, launch, AccessKind.STORE, x), number)
        sanitizer.end_launch(launch)
    assert not kinds(sanitizer)


def test_launches_that_nobody_waited_for_race() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launches = [sanitizer.begin_launch(f"launch {number}") for number in range(2)]
    for time, launch in enumerate(launches):
        sanitizer.complete(access(sanitizer, launch, AccessKind.STORE, x), time)
    assert kinds(sanitizer) == [FindingKind.RACE]


def test_a_launch_knows_only_those_that_were_waited_for_when_it_began() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    first, second = sanitizer.begin_launch("first"), sanitizer.begin_launch("second")
    sanitizer.complete(access(sanitizer, first, AccessKind.STORE, x), 1)
    sanitizer.end_launch(first)
    third = sanitizer.begin_launch("third")
    sanitizer.complete(access(sanitizer, third, AccessKind.LOAD, x), 2)
    assert not kinds(sanitizer)
    sanitizer.complete(access(sanitizer, second, AccessKind.STORE, x), 3)
    pairs = [[side.actor for side in race.sides] for race in sanitizer.findings]
    assert pairs == [["first", "second"], ["third", "second"]]


@pytest.mark.parametrize("kind", [AccessKind.HOST_READ, AccessKind.HOST_WRITE])
def test_the_host_races_with_what_it_did_not_wait_for(kind: AccessKind) -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launch = sanitizer.begin_launch("launch")
    sanitizer.complete(access(sanitizer, launch, AccessKind.STORE, x), 1)
    sanitizer.note_host_access(kind, x.regions, at_ps=2, line="host.py:7")
    (race,) = sanitizer.findings
    assert race.lines == ("store", "host.py:7")
    assert race.num_bytes == SIZE


def test_what_a_launch_does_after_a_write_of_the_host_races_with_it() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launch = sanitizer.begin_launch("launch")
    sanitizer.note_host_access(AccessKind.HOST_WRITE, x.regions, at_ps=2)
    sanitizer.complete(access(sanitizer, launch, AccessKind.LOAD, x), 3)
    assert kinds(sanitizer) == [FindingKind.RACE]


def test_the_missing_bytes_of_a_read_are_counted_and_the_first_is_named() -> None:
    sanitizer = Sanitizer()
    x = tensor(sanitizer)
    sanitizer.note_host_access(AccessKind.HOST_WRITE, [Region(HERE, 0, 0, 20)], at_ps=0)
    launch = sanitizer.begin_launch("launch")
    sanitizer.complete(access(sanitizer, launch, AccessKind.LOAD, x), 9)
    (finding,) = sanitizer.findings
    assert finding.kind is FindingKind.UNINITIALISED
    assert (finding.element, finding.num_bytes) == ("x[5]", 44)
    assert finding.sides[0].at_ps == 9


def test_a_new_tensor_on_old_bytes_was_never_written() -> None:
    sanitizer = Sanitizer()
    sanitizer.note_free(written(sanitizer), at_ps=1)
    again = tensor(sanitizer, "again", BASE + 4096)
    launch = sanitizer.begin_launch("launch")
    sanitizer.complete(access(sanitizer, launch, AccessKind.LOAD, again), 2)
    assert kinds(sanitizer) == [FindingKind.UNINITIALISED]


def test_an_access_that_is_served_after_the_free_is_told_with_both_times() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launch = sanitizer.begin_launch("launch")
    late = access(sanitizer, launch, AccessKind.LOAD, x)
    sanitizer.note_free(x, at_ps=5)
    sanitizer.complete(late, 8)
    (finding,) = sanitizer.findings
    assert finding.kind is FindingKind.USE_AFTER_FREE
    assert "freed at 5 ps" in finding.detail
    assert finding.sides[0].at_ps == 8


@pytest.mark.parametrize(("pe", "expected"), [(HERE, [FindingKind.STALE_PAGE]), (THERE, [])])
def test_only_the_pe_that_lost_the_page_has_a_stale_one(
    pe: PeCoord, expected: list[FindingKind]
) -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launch = sanitizer.begin_launch("launch")
    late = access(sanitizer, launch, AccessKind.LOAD, x)
    sanitizer.note_unmap(BASE, BASE + 4096, pe.__eq__, at_ps=5)
    sanitizer.complete(late, 8)
    assert kinds(sanitizer) == expected


def test_a_page_that_was_unmapped_before_the_access_is_not_stale() -> None:
    """It has been mapped again since, or the access would not have been translated."""
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launch = sanitizer.begin_launch("launch")
    sanitizer.note_unmap(BASE, BASE + 4096, HERE.__eq__, at_ps=5)
    sanitizer.complete(access(sanitizer, launch, AccessKind.LOAD, x), 8)
    assert not kinds(sanitizer)


def test_what_is_wrong_at_its_issue_is_told_though_it_is_never_served() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    access(sanitizer, sanitizer.begin_launch("launch"), AccessKind.LOAD, x, 8)
    (finding,) = sanitizer.findings
    assert finding.kind is FindingKind.OUT_OF_BOUNDS
    assert (finding.num_bytes, finding.sides[0].at_ps) == (8, None)
    assert "0 bytes behind the end of x, where no tensor is" in finding.detail
    assert len(sanitizer.findings) == 1


def test_the_tensor_that_is_hit_instead_is_named() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    tensor(sanitizer, "y", BASE + SIZE, SIZE)
    access(sanitizer, sanitizer.begin_launch("launch"), AccessKind.STORE, x, 12)
    (finding,) = sanitizer.findings
    assert "that is y[0] of y (f32[16])" in finding.detail


def test_history_ends_when_the_host_has_waited_for_all() -> None:
    sanitizer = Sanitizer()
    x = written(sanitizer)
    launch = sanitizer.begin_launch("launch")
    sanitizer.complete(access(sanitizer, launch, AccessKind.STORE, x), 1)
    sanitizer.end_launch(launch)
    assert sanitizer._history._writers == [None]


# -- findings --------------------------------------------------------------------------------------


def finding(line: str, kind: FindingKind = FindingKind.RACE) -> Finding:
    load = FlaggedAccess(what="load", actor="a", line=line, at_ps=1, num_bytes=4)
    store = FlaggedAccess(what="store", actor="b", line="b.py:1", at_ps=2, num_bytes=4)
    return Finding(kind, "x (f32[4])", "x[0]", 4, "why", (load, store))


def test_a_pair_of_lines_is_told_once_and_counted() -> None:
    findings = Findings()
    for line in ("a.py:1", "a.py:2", "a.py:1", "a.py:1"):
        findings.add(finding(line))
    assert [(each.sides[0].line, each.count) for each in findings] == [("a.py:1", 3), ("a.py:2", 1)]
    assert "x[0] of x (f32[4]), 3 times" in findings.text


def test_findings_are_bounded_and_say_how_much_is_left_out() -> None:
    findings = Findings(limit=3)
    for number in range(7):
        findings.add(finding(f"a.py:{number}"))
    findings.add(finding("a.py:0"))
    assert len(findings) == 3
    assert findings.num_left_out == 4
    assert findings.text.endswith("4 more findings at other lines were left out")


def test_nothing_found_raises_nothing() -> None:
    Findings().check()


def test_what_was_found_is_raised_whole() -> None:
    findings = Findings()
    findings.add(finding("a.py:1"))
    findings.add(finding("a.py:2", FindingKind.OUT_OF_BOUNDS))
    with pytest.raises(SanitizerError, match=r"2 mistakes \(1 race, 1 out of bounds\)") as caught:
        findings.check()
    assert caught.value.findings == tuple(findings)
    assert pickle.loads(pickle.dumps(caught.value)).findings == tuple(findings)


# -- addresses -------------------------------------------------------------------------------------


def test_addresses_come_back_only_when_there_are_no_others() -> None:
    space = QuarantinedSpace(page_bytes=4096, base=0, capacity_bytes=6 * 4096)
    first, second = (space.allocate(4096, requester="a") for _ in range(2))
    space.free(second, 4096)
    space.free(first, 4096)
    assert space.allocate(1, requester="b") == 4 * 4096
    assert space.allocate(1, requester="c") == second  # the one that was freed first
    assert space.allocate(1, requester="d") == first
    with pytest.raises(OutOfMemoryError):
        space.allocate(1, requester="e")
