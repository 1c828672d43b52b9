"""Kernels under Triton's interpreter, in a process of its own.

The interpreter must be chosen before triton is imported, and it patches triton while it runs; in
this process triton stays what a user's program sees. One process serves all tests of a session.
"""

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ("InterpreterFailure", "run_in_triton")

WORKER = Path(__file__).with_name("interpreter_worker.py")


class InterpreterFailure(Exception):  # noqa: N818  # its text is the worker's traceback
    """What a kernel raised under the interpreter."""


@dataclass(frozen=True, slots=True)
class Worker:
    process: subprocess.Popen[bytes]

    def ask(self, request: tuple[Any, ...]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump(request, self.process.stdin)
        self.process.stdin.flush()
        done, answer = pickle.load(self.process.stdout)
        if not done:
            raise InterpreterFailure(answer)
        return answer


@cache
def _worker() -> Worker:
    """Ends with this process: its standard input is then at its end."""
    paths = filter(None, (str(WORKER.parents[2]), os.environ.get("PYTHONPATH")))
    chosen = {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(
        [sys.executable, str(WORKER)],
        env=os.environ | chosen,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return Worker(process)


def run_in_triton(
    file: Path, kernel: str, grid: tuple[int, ...] | str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """All array arguments as the launch leaves them; ``grid`` may name a function of the file."""
    answer: dict[str, Any] = _worker().ask((file, kernel, grid, arguments))
    return answer
