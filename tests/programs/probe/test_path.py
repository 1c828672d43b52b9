"""The breakdown of a row: each part is what a change of the machine says it is."""

import pytest

from tests.programs.probe.machines import small_machine
from tilewright.engine import TraceRecord
from tilewright.engine.dram.spec import BankedRefreshSpec, RefreshScope
from tilewright.engine.statistics import MemoryRecord
from tilewright.errors import InternalError
from tilewright.machine.node import Link, LinkKind
from tilewright.programs.probe.path import PathInput, break_down
from tilewright.programs.probe.run import run_probe
from tilewright.records import ProbeRow

LINK = Link(
    src=0,
    dst=1,
    kind=LinkKind.NETWORK,
    bytes_per_us=64_000,
    wire_ps=3,
    node_ps=7,
    buffer_bytes=1024,
    credit_ps=0,
    reassemble=False,
)


def row_of(case: str, num_bytes: int, *overrides: str) -> ProbeRow:
    (row,) = run_probe(small_machine(*overrides), names=[case], sizes=[num_bytes]).cases
    return row


def test_routers_and_wires_are_overhead_and_wire() -> None:
    plain = row_of("pe_next_cube", 1024).breakdown_ps
    routers = row_of("pe_next_cube", 1024, "cube.noc.router_ps=3000").breakdown_ps
    wires = row_of("pe_next_cube", 1024, "ps_per_mm=30").breakdown_ps
    hops = (routers.overhead - plain.overhead) / 2_000
    assert hops == int(hops) > 0
    assert wires.wire == 3 * plain.wire
    for other in (routers, wires):
        assert (other.serialisation, other.memory) == (plain.serialisation, plain.memory)


def test_others_make_a_packet_queue_and_its_own_are_serialisation() -> None:
    assert row_of("pe_local", 65536).breakdown_ps.queueing == 0
    assert row_of("hot_3", 65536).breakdown_ps.queueing > 500_000


@pytest.mark.parametrize("case", ["pe_local", "pe_same_cube"])
def test_what_refresh_adds_to_a_stream_is_told_as_refresh(case: str) -> None:
    """Also where a full queue keeps the packet out: the memory is closed to it all the same.

    The rest, less than opening rows anew costs, is the memory's.
    """
    calm = row_of(case, 2**20, "cube.hbm.refresh.kind=none")
    row = row_of(case, 2**20)
    added_ps = row.latency_ps - calm.latency_ps
    assert calm.breakdown_ps.refresh == 0
    assert added_ps > 530_000
    assert 0.9 * added_ps < row.breakdown_ps.refresh <= added_ps


def path_input(**more: object) -> PathInput:
    """Link 0 to memory 1 and back over link 2: one packet that waits at the memory's door."""
    found: dict[str, object] = {
        "trace": [
            TraceRecord(server=0, packet_id=5, ready_ps=0, start_ps=4, tail_ps=10),
            TraceRecord(server=1, packet_id=5, ready_ps=20, start_ps=50, tail_ps=50),
            TraceRecord(server=2, packet_id=5, ready_ps=80, start_ps=80, tail_ps=90),
        ],
        "memory_trace": [
            MemoryRecord(server=1, packet_id=5, decided_ps=50, done_ps=80, refresh_ps=0)
        ],
        "links": {0: LINK, 2: LINK},
        "shared_memories": (),
        "least_access_ps": 12,
        "is_alone": True,
    }
    return PathInput(**(found | more))  # type: ignore[arg-type]


def test_the_parts_of_one_packet_are_those_of_its_hops() -> None:
    parts = break_down(path_input())
    assert parts == {
        "overhead": 14,
        "wire": 6,
        "serialisation": 4 + 6 + 10 - 10 + 10,
        "queueing": 0,
        "memory": 60,
        "refresh": 0,
    }
    assert sum(parts.values()) == 100


def test_in_a_crowd_waiting_is_queueing_and_a_shared_memory_makes_one_queue() -> None:
    parts = break_down(path_input(is_alone=False, shared_memories={1}))
    assert parts["queueing"] == 4 + 60 - 12
    assert parts["memory"] == 12


def test_a_wait_at_the_door_during_a_refresh_that_another_access_met_is_refresh() -> None:
    plain = path_input()
    other = [
        TraceRecord(server=0, packet_id=4, ready_ps=0, start_ps=0, tail_ps=4),
        TraceRecord(server=1, packet_id=4, ready_ps=14, start_ps=14, tail_ps=14),
        TraceRecord(server=2, packet_id=4, ready_ps=70, start_ps=70, tail_ps=80),
    ]
    met = MemoryRecord(server=1, packet_id=4, decided_ps=14, done_ps=70, refresh_ps=25)
    found = path_input(
        trace=[*other, *plain.trace],
        memory_trace=[met, *plain.memory_trace],
        refreshes={1: BankedRefreshSpec(RefreshScope.ALL_BANKS, 1_000, first_ps=16, busy_ps=1)},
    )
    parts = break_down(found)
    assert parts["refresh"] == 41 - 20  # the memory was closed from 16 to 41, the packet came at 20
    assert parts["memory"] == 60 - 21
    assert sum(parts.values()) == 100


def test_a_packet_that_sets_out_for_no_reason_is_a_bug_of_ours() -> None:
    late = TraceRecord(server=0, packet_id=5, ready_ps=3, start_ps=4, tail_ps=10)
    with pytest.raises(InternalError, match="sets out at 3 ps"):
        break_down(path_input(trace=[late, *path_input().trace[1:]]))
