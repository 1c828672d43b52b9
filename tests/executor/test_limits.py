"""Programs that go on for ever: they end with an error, and take no more memory until then."""

import subprocess
import sys
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from tests.kinds import every_engine
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.engine.spec import Limits
from tilewright.errors import LimitError
from tilewright.host import DPPolicy, Interleave, PeCoord, RuntimeContext

ONE = DPPolicy(num_sips=1)


def load_on(a: Any, count: int) -> None:
    for _ in range(count):
        tl.load(a)


def compute_on(a: Any, count: int) -> None:
    x = tl.load(a)
    for _ in range(count - 1):
        x = x + 1


def swap_on(a: Any, count: int) -> None:
    for _ in range(count):
        tl.atomic_add(a, 1)


def _run(
    kernel: Callable[..., Any], count: int, limits: Limits, engine: EngineKind, **more: Any
) -> RuntimeContext:
    with RuntimeContext("ahbm-small", limits=limits, engine=engine) as torch:
        a = torch.zeros(4, "i32", dp=ONE)
        torch.launch(kernel, a, count, on=[PeCoord(0, 0, 0)], **more)
    return torch


@every_engine
@pytest.mark.parametrize("kernel", [load_on, compute_on, swap_on])
def test_a_program_issues_as_many_commands_as_it_may_and_no_more(
    kernel: Callable[..., Any], kind: EngineKind
) -> None:
    limits = Limits(commands=100)
    (report,) = _run(kernel, 100, limits, kind).reports
    assert report.counters.commands == 100
    with pytest.raises(LimitError) as caught:
        _run(kernel, 101, limits, kind)
    assert f"in {kernel.__name__}, program (0, 0, 0)" in caught.value.where
    assert "test_limits.py:" in caught.value.where
    assert caught.value.found == "more than 100 commands"


@every_engine
def test_the_limit_is_of_each_program_not_of_those_before_it(kind: EngineKind) -> None:
    with RuntimeContext("ahbm-small", limits=Limits(commands=100), engine=kind) as torch:
        a = torch.zeros(4, "i32", dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1))
        torch.launch(load_on, a, 60, grid=(5,))


@every_engine
def test_messages_are_commands_too(kind: EngineKind) -> None:
    def exchange() -> None:
        while True:
            tl.send("E" if tl.program_id(0) == 0 else "W", tl.zeros((4,), tl.int32))
            tl.recv("E" if tl.program_id(0) == 0 else "W", (4,), tl.int32)

    pes = [PeCoord(0, 0, 0), PeCoord(0, 0, 1)]
    with RuntimeContext("ahbm-small", limits=Limits(commands=200), engine=kind) as torch:
        neighbours = {pes[0]: {"E": pes[1]}, pes[1]: {"W": pes[0]}}
        with pytest.raises(LimitError, match="limit on commands"):
            torch.launch(exchange, grid=(2,), on=pes, neighbours=neighbours)


def test_a_grid_of_too_many_programs_is_refused_at_once() -> None:
    with RuntimeContext("ahbm-small") as torch:
        a = torch.zeros(4, "i32", dp=DPPolicy(pe=Interleave(65536)))
        with pytest.raises(LimitError, match=r"1000000000 programs.*--limit programs="):
            torch.launch(load_on, a, 1, grid=(1000, 1000, 1000))


def test_programs_of_a_large_grid_take_no_space_before_they_run() -> None:
    ran = []

    def stop_soon(a: Any) -> None:
        del a
        ran.append(tuple(int(tl.program_id(axis)) for axis in range(2)))
        if len(ran) == 3:
            raise RuntimeError("enough")

    with RuntimeContext("ahbm-small") as torch:
        a = torch.zeros(4, "i32", dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1))
        with pytest.raises(RuntimeError, match="enough"):
            torch.launch(stop_soon, a, grid=(2, 4_000_000))
    assert ran == [(0, 0), (1, 0), (0, 1)]


ENDLESS = dedent(
    """
    import gc
    import resource
    import tilewright.language as tl
    from tilewright.engine.spec import Limits
    from tilewright.errors import LimitError
    from tilewright.host import DPPolicy, RuntimeContext

    def load(a):
        while True:
            tl.load(a)

    def wait(a):
        n = 0
        while tl.load(a) == 0:
            n += 1

    def compute(a):
        x = y = tl.load(a + tl.arange(0, 16))
        while True:
            x, y = x * 2, y + 1

    def hold(a):
        x = tl.load(a)
        while True:
            tl.store(a + 1, x)

    one = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
    torch = RuntimeContext("ahbm-small", limits=Limits(commands=150_000))
    a = torch.zeros(64, "i32", dp=one)

    def run(kernel):
        try:
            torch.launch(kernel, a)
        except LimitError as error:
            print(error.found)
        gc.collect()  # the device that an error has ended

    run(hold)
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most_bytes = pages * resource.getpagesize() + 12 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    for kernel in (load, wait, compute, hold):
        run(kernel)
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system of Linux for its memory")
def test_memory_stays_flat_until_an_endless_program_is_stopped() -> None:
    """Loads that nobody waits for, polls, chains of values, and uses of one value."""
    found = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.stdout.splitlines() == 5 * ["more than 150000 commands"], found.stderr
