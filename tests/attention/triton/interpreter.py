"""Generated kernels under Triton's interpreter, or its compiler: a process each for all tests."""

import atexit
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")


class InterpreterFailure(Exception):  # noqa: N818  # its text is the worker's traceback
    """What a kernel raised."""


@cache
def _process(interprets: bool) -> subprocess.Popen[bytes]:
    """Ends with this process, which waits for it so that its time is accounted for."""
    kept = tempfile.mkdtemp(prefix="kernels-")  # what the compiler writes beside its result
    atexit.register(shutil.rmtree, kept)
    process = subprocess.Popen(
        [sys.executable, str(WORKER)],
        env=os.environ | {"TRITON_INTERPRET": str(int(interprets)), "TRITON_CACHE_DIR": kept},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.communicate)
    return process


def ask(task: str, *arguments: Any) -> dict[str, Any]:
    """Run kernels under the interpreter; only compiling them needs a process without it."""
    process = _process(task != "compile")
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump((task, *arguments), process.stdin)
    process.stdin.flush()
    done, answer = pickle.load(process.stdout)
    if not done:
        raise InterpreterFailure(answer)
    found: dict[str, Any] = answer
    return found
