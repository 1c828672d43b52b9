"""Walks of programs that share a PE, and of launches that follow each other."""

from functools import cache
from typing import Any

import pytest

from tests.kinds import ENGINES
from tilewright.engine import EngineKind
from tilewright.host import DPPolicy, LaunchReport, RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine

ONE = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
WALK_PS = 50_000


@cache
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


def wait_and_load(x: Any, tl: Any) -> None:
    """All programs read one page; the last ones have to wait for a value first."""
    number = tl.program_id(0)
    for _ in range(3 * number):
        number = int(tl.load(x + 64 * number)) + number
    tl.load(x + 4096)


def run(kind: EngineKind, *launches: tuple[int, int]) -> tuple[list[LaunchReport], int, int]:
    """Launches of so many programs, of which so many at a time, one after the other."""
    with RuntimeContext(machine(), engine=kind.value) as torch:
        x = torch.zeros(8192, "i32", dp=ONE)
        reports = [
            torch.launch(wait_and_load, x, grid=(num_programs,), resident=resident).report
            for num_programs, resident in launches
        ]
        (mmu,) = [mmu for mmu in torch.driver.mmus.values() if mmu.state.walks]
        return reports, mmu.state.walks, mmu.state.hits


@pytest.mark.parametrize("kind", ENGINES)
def test_a_page_that_a_launch_before_has_walked_for_is_at_hand(kind: EngineKind) -> None:
    (first, second), walks, _ = run(kind, (1, 1), (1, 1))
    assert walks == 1
    assert first.execution_ps - second.execution_ps >= WALK_PS


@pytest.mark.parametrize("kind", ENGINES)
def test_programs_that_begin_at_a_time_walk_each_and_later_ones_do_not(kind: EngineKind) -> None:
    """Two begin together; those that follow them find the page."""
    _, walks, hits = run(kind, (4, 2))
    assert walks == 2
    assert hits == 1 + 4 + 7 + 10 - 2
