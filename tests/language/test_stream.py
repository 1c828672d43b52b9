from typing import Any

import numpy as np
import pytest

from tilewright import language as tl
from tilewright.language import stream
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
