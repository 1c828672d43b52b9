"""Programs that send each other messages: their arrows and their waiting."""

from pathlib import Path

import pytest

from tests.report.perfetto.read_trace import ReadSlice, read_trace
from tests.studies.run_programs import MACHINE, run_file, written
from tilewright.machine.node import place_name
from tilewright.report.perfetto.recorder import MESSAGES
from tilewright.studies.run.command import RunWatch

RING = """
import tilewright.language as tl
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.host import DPPolicy, LocalShard
from tilewright.executor.neighbour import Neighbours


def shift(x_ptr, rounds):
    block = tl.load(x_ptr, shape=(32, 32))
    for _ in range(rounds):
        tl.send("E", block)
        block = tl.dot(block, tl.recv("W", (32, 32), tl.float32))
    tl.store(tl.ref(x_ptr, (32, 32)), block)


def run(torch, rounds: int = 3, kind: str = "tcm"):
    x = torch.zeros((16, 1024), "f32", dp=DPPolicy(cube="row_wise", pe="row_wise"), timed=False)
    pes = list(torch.machine.grid.pes())
    table = {
        pe: {"E": pes[(place + 1) % len(pes)], "W": pes[place - 1]} for place, pe in enumerate(pes)
    }
    ring = RingSpec(RingKind(kind), slots=4, slot_bytes=1024)
    addresses = {
        (pe, way): (2 * number + turn + 64) * 2**14
        for number, pe in enumerate(pes)
        for turn, way in enumerate("EW")
    }
    torch.launch(shift, LocalShard(x), rounds, neighbours=Neighbours(table, ring, addresses))
"""


@pytest.mark.parametrize("kind", ["tcm", "hbm"])
def test_an_arrow_leads_from_every_send_to_its_receive(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "ring.pftrace"
    record = run_file(written(tmp_path, RING), RunWatch(trace=file), kind=kind)
    assert record.breakdown_ps.message_wait > 0
    assert record.breakdown_ps.other == 0
    arrows: dict[int, list[tuple[str, ReadSlice]]] = {}
    for (process, _), slices in read_trace(file.read_bytes()).slices.items():
        for one in slices:
            for flow in one.flows:
                if flow >= MESSAGES:
                    arrows.setdefault(flow, []).append((process, one))
    pes = [place_name(pe) for pe in MACHINE.grid.pes()]
    assert len(arrows) == 3 * len(pes)
    for ends in arrows.values():
        (sender, first), (receiver, second) = sorted(ends, key=lambda end: end[1].start_ns)
        assert (first.name.split()[0], second.name.split()[0]) == ("send", "recv")
        assert receiver == pes[(pes.index(sender) + 1) % len(pes)]
        # the n-th send of a program is its east neighbour's n-th receive
        assert second.arguments["command"] - first.arguments["command"] == 1
