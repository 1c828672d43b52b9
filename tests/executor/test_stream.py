from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.executor import stream
from tilewright.executor.program import Program
from tilewright.machine import build_machine, parse_machine
from tilewright.runtime.workspace import Workspace


def accumulate(x_ptr: Any, out_ptr: Any, rounds: int, block: int) -> None:
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros([block], tl.float32)
    for turn in range(rounds):
        total += tl.load(x_ptr + (offsets + turn * block) % (8 * block))
    tl.store(out_ptr + offsets, total)


@pytest.mark.parametrize("rounds", [10, 700])
def test_how_far_a_program_runs_ahead_changes_no_time(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = build_machine(parse_machine("ahbm-small"))
    pes = list(machine.grid.pes())[:2]
    block = 256
    x = np.arange(8 * block, dtype=np.float32)
    found = []
    for piece_commands in (1, 1024, 10**9):
        monkeypatch.setattr(stream, "PIECE_COMMANDS", piece_commands)
        workspace = Workspace(machine)
        inputs, out = workspace.place(x, pes), workspace.place(np.zeros(2 * block, np.float32), pes)
        result = workspace.launch(accumulate, inputs, out, rounds, block, grid=(2,), pes=pes)
        found.append((result, workspace.read(out).tobytes()))
    assert found[0] == found[1] == found[2]


def look(counts_ptr: Any, x_ptr: Any, out_ptr: Any, block: int) -> None:
    """Control and addresses by numbers that follow from one load, and by ones that do not."""
    program = tl.program_id(0)
    count = tl.load(counts_ptr + program)
    rounds = (count + 3) // 4
    total = tl.zeros([block], tl.float32)
    for turn in range(rounds):  # follows from count
        total += tl.load(x_ptr + rounds * turn + tl.arange(0, block))
    if count * 2 > 6:  # follows too, but comes later than what is under way
        total += 1.0
    if tl.load(counts_ptr + (rounds - 1) % 2) > 5:  # is loaded first
        total *= 2.0
    places = tl.load(counts_ptr + tl.arange(0, 4))
    picked = tl.load(x_ptr + places) + tl.load(x_ptr + (places + 1) * 2)  # the second follows
    total += tl.sum(picked, 0)
    tl.store(out_ptr + program * block + tl.arange(0, block), total)


@every_engine
def test_a_value_that_follows_from_others_is_not_waited_for_and_changes_no_time(
    kind: EngineKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = build_machine(parse_machine("ahbm-small"))
    pes, block, num_programs = list(machine.grid.pes())[:2], 64, 6
    counts = np.array([7, 2, 9, 4, 3, 8], np.int32)
    x = np.arange(512, dtype=np.float32)
    waits: list[int] = []
    wait = stream.Stream.wait

    def counted(self: stream.Stream, task: int, what: Any) -> None:
        waits[-1] += 1
        wait(self, task, what)

    monkeypatch.setattr(stream.Stream, "wait", counted)
    found = []
    for runs_ahead in (True, False):
        with monkeypatch.context() as patch:
            if not runs_ahead:
                patch.setattr(Program, "runs_ahead", False)
            workspace = Workspace(machine, kind)
            waits.append(0)
            placed = [workspace.place(each, pes) for each in (counts, x)]
            out = workspace.place(np.zeros(num_programs * block, np.float32), pes)
            result = workspace.launch(look, *placed, out, block, grid=(num_programs,), pes=pes)
            found.append((result, workspace.read(out).tobytes()))
    assert found[0] == found[1]
    assert waits[0] < waits[1]
