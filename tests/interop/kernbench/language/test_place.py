"""Numbers of PEs and cubes as a kernel sees them."""

from typing import Any

from tests.interop.kernbench.language.bed import launch
from tilewright.host import RuntimeContext
from tilewright.machine.coords import PeCoord


def test_programs_have_the_machines_own_numbers_whatever_a_launch_targets() -> None:
    """Four cubes of four PEs; the launch has two PEs of two cubes."""
    seen = {}

    def kernel(tl: Any) -> None:
        ids = tl.program_id(0), tl.program_id(axis=1)
        seen[ids] = tl.num_programs(0), tl.num_programs(axis=1)

    with RuntimeContext("ahbm-small") as torch:
        on = [PeCoord(0, cube, pe) for cube in (1, 3) for pe in (2, 3)]
        launch(torch, kernel, on=on)
    assert seen == {(pe, cube): (2, 4) for pe in (2, 3) for cube in (1, 3)}
