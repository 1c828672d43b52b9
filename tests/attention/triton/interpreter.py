"""Generated kernels under Triton's interpreter, in a process of its own that serves all tests."""

import atexit
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")


class InterpreterFailure(Exception):  # noqa: N818  # its text is the worker's traceback
    """What a kernel raised."""


@cache
def _process() -> subprocess.Popen[bytes]:
    """Ends with this process, which waits for it so that its time is accounted for."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.communicate)
    return process


def ask(task: str, *arguments: Any) -> dict[str, Any]:
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump((task, *arguments), process.stdin)
    process.stdin.flush()
    done, answer = pickle.load(process.stdout)
    if not done:
        raise InterpreterFailure(answer)
    found: dict[str, Any] = answer
    return found
