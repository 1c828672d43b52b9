"""Triton's interpreter in a process of its own: the environment decides when Triton is imported."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Self

import triton  # type: ignore[import-untyped]  # noqa: F401  # the peer is there or is not

from tilewright.errors import InternalError


class TritonInterpreter:
    """Runs kernels of ``tutorial_kernels`` and measures itself.

    It does nothing while it is not asked, so both sides can take turns.
    """

    def __enter__(self) -> Self:
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        worker, pipe = Path(__file__).with_name("triton_worker.py"), subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, str(worker)], stdin=pipe, stdout=pipe, env=environment
        )
        return self

    def __exit__(self, *_error: object) -> None:
        self._pipe(self._process.stdin).close()
        self._process.terminate()
        self._process.wait()

    def run(self, kernel: str, grid: tuple[int, ...], arguments: dict[str, Any]) -> float:
        """Seconds of a launch over arrays that stay there."""
        return float(self._ask(("run", kernel, grid, arguments)))

    def fetch(self, name: str) -> Any:
        """An array of the last launch."""
        return self._ask(("fetch", name))

    def _ask(self, request: tuple[Any, ...]) -> Any:
        pickle.dump(request, self._pipe(self._process.stdin))
        self._pipe(self._process.stdin).flush()
        try:
            is_well, answer = pickle.load(self._pipe(self._process.stdout))
        except EOFError:
            found = f"an end with status {self._process.wait()}"
            raise InternalError("Triton's interpreter", found, "an answer", "see above") from None
        if not is_well:
            raise InternalError("Triton's interpreter", answer, "a launch", "correct the kernel")
        return answer

    def _pipe(self, pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise InternalError("Triton's interpreter", "no pipe", "one", "report it")
        return pipe
