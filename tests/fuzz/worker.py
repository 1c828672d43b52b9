"""A process that runs one input after the other; what ends it is seen by its parent."""

import faulthandler
import os
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.generator import FindingError, Generator, random_of

__all__ = ("Answer", "Task", "work")

MAX_BYTES = 8 << 30  # of address space: what takes more ends as a MemoryError


@dataclass(frozen=True, slots=True)
class Task:
    """One input, by its name."""

    generator: str
    index: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an input: nothing, or the text of a finding."""

    finding: str | None
    seconds: float  # of CPU time
    peak_bytes: int  # largest resident size of the worker so far


def work(
    pipe: Connection, generators: Mapping[str, Generator], seed: int, folder: Path, stacks: Path
) -> None:
    """Answer tasks until the pipe closes. ``stacks`` gets the stack on a crash or SIGUSR1."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with stacks.open("w") as file, suppress(EOFError):
        faulthandler.enable(file)
        faulthandler.register(signal.SIGUSR1, file, all_threads=True)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        warnings.simplefilter("error", RuntimeWarning)  # else the user of a command would see it
        while True:
            task: Task = pipe.recv()
            pipe.send(_answer(generators[task.generator], seed, task.index, folder))


def _answer(generator: Generator, seed: int, index: int, folder: Path) -> Answer:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    start = time.process_time()
    finding = None
    try:
        generator.run(random_of(seed, generator.name, index), folder)
    except FindingError as error:
        finding = str(error)
    except BaseException:  # noqa: BLE001  # whatever comes through is a finding
        finding = traceback.format_exc()
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Answer(finding, time.process_time() - start, peak_bytes)
