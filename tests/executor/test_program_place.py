"""Programs know their place among the PEs, cubes and SIPs of their launch."""

from typing import Any

import numpy as np
import pytest

from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.machine import PeCoord, build_machine, parse_machine
from tilewright.machine.coords import HARDWARE_AXES
from tilewright.runtime.workspace import Workspace


def test_a_kernel_sees_its_pe_its_cube_and_its_sip() -> None:
    machine = build_machine(parse_machine("ahbm"))
    workspace = Workspace(machine)
    pes = [PeCoord(sip, cube, pe) for sip in range(2) for cube in (0, 5) for pe in (1, 6)]
    out = workspace.place(np.zeros((8, 6), np.int32), pes[:1])

    def kernel(out: Any) -> None:
        row = out + 6 * tl.program_id(0)
        for place, axis in enumerate(HARDWARE_AXES):
            tl.store(row + place, tl.program_id(axis))
            tl.store(row + 3 + place, tl.num_programs(axis))

    workspace.launch(kernel, out, grid=(8,), pes=pes)
    expected = [
        [pe, cube, sip, 2, 2, 2] for sip in range(2) for cube in range(2) for pe in range(2)
    ]
    assert workspace.read(out).tolist() == expected


def test_an_unknown_axis_is_refused() -> None:
    workspace = Workspace(build_machine(parse_machine("ahbm")))
    out = workspace.place(np.zeros(1, np.int32), [PeCoord(0, 0, 0)])

    def kernel(out: Any) -> None:
        tl.store(out, tl.program_id("rack"))

    with pytest.raises(KernelError, match="found axis 'rack' of the grid"):
        workspace.launch(kernel, out, grid=(1,), pes=[PeCoord(0, 0, 0)])
