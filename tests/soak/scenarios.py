"""What ``make soak`` does for minutes: launches, all-reduces, contexts, interrupted commands.

A scenario prepares itself, then yields after each step.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tests.interrupts import interruptible_children
from tests.report.perfetto.read_trace import read_trace
from tests.studies.run_programs import SCALE
from tilewright import language as tl
from tilewright.errors import DeadlockError
from tilewright.host import DPPolicy, Interleave, RuntimeContext
from tilewright.machine import build_machine, parse_machine
from tilewright.records import RunRecord, read_record

PAGES = DPPolicy(pe=Interleave(65_536), num_cubes=1)
ELEMENTS = 4096
INTERRUPTED = 130
MAX_DELAY_S = 2.0  # from the first line of a command to its signal
END_S = 60.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps that may go on for ever, and the bytes of host memory that one of them may keep."""

    steps: Callable[[Path], Iterator[None]]
    kept_bytes: int = 0


def add(x: Any, y: Any, out: Any, block: Any) -> None:
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + offsets, tl.load(x + offsets) + tl.load(y + offsets))


def wait_for_ever(flag: Any) -> None:
    while tl.load(flag) == 0:
        pass


def launches(_folder: Path) -> Iterator[None]:
    """Launch on one context, waited for or not, with tensors that come and go."""
    with RuntimeContext("ahbm", "sip:0") as torch:
        x, y, out = (torch.zeros(ELEMENTS, "f32", dp=PAGES) for _ in range(3))
        x.copy_(np.ones(ELEMENTS, np.float32))
        for step in range(sys.maxsize):
            torch.launch(add, x, y, out, 256, grid=(16,), wait=step % 3 != 0)
            if step % 8 == 0:
                passing = torch.zeros(ELEMENTS, "f32", dp=PAGES)
                torch.launch(add, x, passing, passing, 256, grid=(16,))
                del passing
            if step % 64 == 0:
                check_equal(out.numpy(), np.ones(ELEMENTS, np.float32))
            yield


def all_reduces(_folder: Path) -> Iterator[None]:
    """All-reduce between the SIPs of one context."""
    overrides = ["sip.count=2", "sip.columns=1", "sip.rows=1"]
    with RuntimeContext(build_machine(parse_machine("ahbm-small", overrides))) as torch:

        def worker(rank: int) -> None:
            torch.ahbm.set_device(rank)
            if not torch.distributed.is_initialized():
                torch.distributed.init_process_group("ahbm")
            tensor = torch.from_numpy(np.full(ELEMENTS, rank + 1.0, np.float32))
            torch.distributed.all_reduce(tensor)
            check_equal(tensor.numpy(), np.full(ELEMENTS, 3.0, np.float32))

        while True:
            torch.multiprocessing.spawn(worker, nprocs=2)
            yield


def contexts(_folder: Path) -> Iterator[None]:
    """Build contexts that are closed, abandoned with a launch under way, or end in a deadlock."""
    machine = build_machine(parse_machine("ahbm-small"))
    for step in range(sys.maxsize):
        torch = RuntimeContext(machine)
        x = torch.zeros(ELEMENTS, "f32", dp=PAGES)
        torch.launch(add, x, x, x, 256, grid=(16,))
        match step % 3:
            case 0:
                torch.close()
            case 1:
                torch.launch(add, x, x, x, 256, grid=(16,), wait=False)
            case _:
                _check_deadlock(torch)
        yield


def _check_deadlock(torch: RuntimeContext) -> None:
    flag = torch.zeros(1, "i32", dp=PAGES)
    try:
        torch.launch(wait_for_ever, flag, grid=(1,))
    except DeadlockError:
        return
    raise AssertionError("a poll that nothing ends was not a deadlock")


def interrupted_commands(folder: Path) -> Iterator[None]:
    """Interrupt or kill commands at random times; the files they leave are whole or not there."""
    program = folder / "mine.py"
    program.write_text(SCALE, encoding="utf-8")
    record, trace = folder / "run.json", folder / "run.pftrace"
    state, plot = folder / "state.json", folder / "front.svg"
    endless = ("--param", "times=1000000", "--param", "n=64", "--machine", "ahbm-small")
    run = ("run", str(program), *endless, "--record", str(record), "--trace", str(trace))
    budgets = ",".join(map(str, range(4, 32)))
    compare = ("attention", "compare", "--source", "synthetic", "--budgets", budgets)
    commands = (run, (*compare, "--state", str(state), "--plot", str(plot)))
    rng = np.random.default_rng(0)
    last = [signal.SIGINT] * len(commands)
    for step in range(sys.maxsize):
        number = signal.SIGKILL if rng.integers(3) == 0 else signal.SIGINT
        if step % 16 == 0:
            state.unlink(missing_ok=True)
        _interrupt(commands[step % 2], number, rng.uniform(0, MAX_DELAY_S))
        last[step % 2] = number
        _check_files(folder, is_tidy=signal.SIGKILL not in last)  # the next run removes its own
        yield


def _interrupt(command: tuple[str, ...], number: signal.Signals, delay_s: float) -> None:
    """Send a signal so long after the first line of a command; check its status and its words."""
    with interruptible_children():
        process = subprocess.Popen(
            (sys.executable, "-m", "tilewright", *command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        if process.stderr is None:
            raise AssertionError("no pipe")
        first = process.stderr.readline()
        time.sleep(delay_s)
        process.send_signal(number)
        try:
            _, errors = process.communicate(timeout=END_S)
        finally:
            process.kill()
    expected = (INTERRUPTED, 0) if number == signal.SIGINT else (-number, 0)
    if process.returncode not in expected or "Traceback" in errors:
        line = f"{' '.join(command)}: {number.name} after {delay_s:.3f} s"
        raise AssertionError(f"{line}: status {process.returncode}\n{first}{errors}")


def _check_files(folder: Path, *, is_tidy: bool) -> None:
    checks: dict[str, Callable[[Path], object]] = {
        "run.json": lambda file: read_record(file, RunRecord),
        "run.pftrace": lambda file: read_trace(file.read_bytes(), is_whole=False),
        "state.json": lambda file: json.loads(file.read_bytes()),
        "front.svg": ElementTree.parse,
    }
    for name, check in checks.items():
        if (folder / name).exists():
            check(folder / name)
    left = sorted({each.name for each in folder.iterdir()} - {"mine.py", *checks})
    if is_tidy and left:
        raise AssertionError(f"left behind: {', '.join(left)}")


def check_equal(found: Any, expected: Any) -> None:
    """Raise AssertionError unless the arrays are equal."""
    np.testing.assert_array_equal(found, expected)


SCENARIOS = {
    "launches": Scenario(launches, kept_bytes=4096),
    "all_reduces": Scenario(all_reduces, kept_bytes=4096),
    "contexts": Scenario(contexts),
    "commands": Scenario(interrupted_commands),
}
