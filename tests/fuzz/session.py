"""A session: generators share the time of one worker process, and findings are kept.

The worker answers for each input. One that takes too much time is a hang, one that dies a crash;
both are findings of the input that was under way, and a new worker goes on behind it.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.generator import Generator
from tests.fuzz.worker import Answer, Task, work

__all__ = ("Finding", "Session", "Share")

MAX_CPU_SECONDS = 30.0  # of one input
MAX_WALL_SECONDS = 150.0  # of one input that waits for something
MAX_RESIDENT_BYTES = (
    2 << 30
)  # a larger worker is replaced: one input's memory is not the next one's
POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Finding:
    """What an input has shown."""

    task: Task
    text: str


@dataclass(slots=True)
class Share:
    """What one generator has had of a session."""

    inputs: int = 0
    seconds: float = 0.0
    findings: int = 0
    slowest_seconds: float = 0.0
    slowest_index: int = 0


class _Worker:
    """The process and our end of its pipe."""

    def __init__(self, generators: Mapping[str, Generator], seed: int, folder: Path) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self._stacks = folder / "stacks"
        arguments = (theirs, generators, seed, folder / "work", self._stacks)
        self._process: BaseProcess = context.Process(target=_begin, args=(self.pipe, *arguments))
        self._process.start()
        theirs.close()

    def answer(self, task: Task) -> Answer | str:
        """Return what became of an input; a text if the worker hung or died, which ends it."""
        seconds, cpu_start = 0.0, self._cpu_seconds()
        try:
            self.pipe.send(task)
            while not self.pipe.poll(POLL_SECONDS):
                seconds += POLL_SECONDS  # no clock: it goes on while both processes are stopped
                cpu_seconds = self._cpu_seconds() - cpu_start
                if cpu_seconds > MAX_CPU_SECONDS or seconds > MAX_WALL_SECONDS:
                    return self._hang(cpu_seconds, seconds)
            answer: Answer = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            return f"the process ended: {_ending(self._process.exitcode or 0)}\n{self._stack()}"
        return answer

    def end(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()

    def _hang(self, cpu_seconds: float, seconds: float) -> str:
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGUSR1)
        time.sleep(1.0)
        self.end()
        return (
            f"no end after {cpu_seconds:.0f} s of CPU time, {seconds:.0f} s in all\n{self._stack()}"
        )

    def _stack(self) -> str:
        return self._stacks.read_text(errors="replace") if self._stacks.exists() else ""

    def _cpu_seconds(self) -> float:
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _begin(
    parents: Connection,
    pipe: Connection,
    generators: Mapping[str, Generator],
    seed: int,
    folder: Path,
    stacks: Path,
) -> None:
    parents.close()  # else the pipe would not close with the parent
    work(pipe, generators, seed, folder, stacks)


def _ending(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit status {code}"


@dataclass(slots=True)
class Session:
    """Generators under one seed, how many inputs each has had, and what was found."""

    generators: Mapping[str, Generator]
    seed: int = 0
    shares: dict[str, Share] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    tell: Callable[[Finding], None] = lambda _: None

    def run_for(self, seconds: float) -> None:
        """Run inputs until the wall time is up; the generator with the least CPU time is next."""
        end = time.monotonic() + seconds

        def tasks() -> Iterator[Task]:
            while time.monotonic() < end:
                name = min(self.generators, key=lambda each: self._share(each).seconds)
                yield Task(name, self._share(name).inputs)

        self._run(tasks())

    def run_inputs(self, tasks: Sequence[Task]) -> None:
        """Run these inputs, in their order."""
        self._run(iter(tasks))

    def _share(self, name: str) -> Share:
        return self.shares.setdefault(name, Share())

    def _run(self, tasks: Iterator[Task]) -> None:
        with TemporaryDirectory(prefix="tilewright-fuzz-") as folder, self._workers(folder) as get:
            for task in tasks:
                worker = get()
                found = worker.answer(task)
                share = self._share(task.generator)
                share.inputs += 1
                if isinstance(found, str):
                    share.seconds += MAX_CPU_SECONDS
                    self._keep(task, found)
                    get(is_new=True)
                    continue
                share.seconds += found.seconds
                if found.seconds > share.slowest_seconds:
                    share.slowest_seconds, share.slowest_index = found.seconds, task.index
                if found.finding is not None:
                    self._keep(task, found.finding)
                if found.peak_bytes > MAX_RESIDENT_BYTES:
                    get(is_new=True)

    def _keep(self, task: Task, text: str) -> None:
        finding = Finding(task, text)
        self.findings.append(finding)
        self._share(task.generator).findings += 1
        self.tell(finding)

    @contextmanager
    def _workers(self, folder: str) -> Iterator[Callable[..., _Worker]]:
        def started() -> _Worker:
            return _Worker(self.generators, self.seed, Path(folder))

        worker = started()

        def get(*, is_new: bool = False) -> _Worker:
            nonlocal worker
            if is_new:
                worker.end()
                worker = started()
            return worker

        try:
            yield get
        finally:
            worker.end()
