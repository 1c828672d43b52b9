"""The files and functions of the package that a command enters after its imports.

``python tools/house_walk.py NAME`` prints how many; ``--list`` prints them, file by file.
"""

import json
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import triton  # type: ignore[import-untyped]
import triton.language as tl  # type: ignore[import-untyped]

from tilewright.cli.main import main
from tilewright.engine import hub
from tilewright.engine.service import ProgramGreenlet
from tilewright.host import DPPolicy, Interleave, RuntimeContext
from tilewright.machine import build_machine, parse_machine

SOURCE = f"{Path(__file__).parents[1] / 'src' / 'tilewright'}{os.sep}"
SMALL = ("--machine", "ahbm-small", "--batch", "1", "--context", "512", "--phases", "1")


class Walk:
    """A profile function that keeps the code of named functions, but for calls of an import."""

    def __init__(self) -> None:
        self.entered: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self.entered or not code.co_filename.startswith(SOURCE):
            return
        if not code.co_name.startswith("<") and not is_importing(frame):
            self.entered.add(code)

    def counts(self) -> dict[str, int]:
        files = {code.co_filename for code in self.entered}
        return {"files": len(files), "functions": len(self.entered)}

    def lines(self) -> list[str]:
        """Return a line for each file with its functions."""
        found: dict[str, list[str]] = {}
        for code in sorted(self.entered, key=lambda c: (c.co_filename, c.co_firstlineno)):
            found.setdefault(code.co_filename.removeprefix(SOURCE), []).append(code.co_qualname)
        return [f"{file}: {len(names)}: {' '.join(names)}" for file, names in found.items()]


def is_importing(frame: FrameType) -> bool:
    """Return whether a module of the package is being imported by a caller of the frame."""
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code.co_name == "<module>" and caller.f_code.co_filename.startswith(SOURCE):
            return True
        caller = caller.f_back
    return False


@triton.jit  # type: ignore[untyped-decorator]
def add(x: Any, y: Any, out: Any, block: tl.constexpr) -> None:
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + offsets, tl.load(x + offsets) + tl.load(y + offsets))


def launch_triton() -> None:
    with RuntimeContext("ahbm", "sip:0") as torch:
        pages = DPPolicy(pe=Interleave(65_536), num_cubes=1)
        x, y, out = (torch.zeros(4096, "f32", dp=pages) for _ in range(3))
        torch.launch(add, x, y, out, 256, grid=(16,))


def all_reduce() -> None:
    spec = parse_machine("ahbm-small", ["sip.count=2", "sip.columns=1", "sip.rows=1"])
    with RuntimeContext(build_machine(spec)) as torch:

        def worker(rank: int) -> None:
            torch.ahbm.set_device(rank)
            torch.distributed.init_process_group("ahbm")
            torch.distributed.all_reduce(torch.from_numpy(np.ones(4096, np.float32)))

        torch.multiprocessing.spawn(worker, nprocs=2)


WALKS = {
    "program": lambda: main(["run", "qkv_gemm"]),
    "triton_launch": launch_triton,
    "flow_latency": lambda: main(["attention", "run", "--backend", "machine", *SMALL]),
    "all_reduce": all_reduce,
    "machine": lambda: main(["machine", "check", "ahbm"]),
}


def take(name: str) -> Walk:
    """Take a walk; greenlets are profiled, too."""
    walk = Walk()

    class Profiled(ProgramGreenlet):
        def __init__(self, run: Any) -> None:
            def begin(*arguments: Any) -> Any:
                sys.setprofile(walk)
                return run(*arguments)

            super().__init__(begin)

    vars(hub)["ProgramGreenlet"] = Profiled
    sys.setprofile(walk)
    try:
        with redirect_stdout(StringIO()):
            WALKS[name]()  # type: ignore[no-untyped-call]  # lambdas have no annotations
    finally:
        sys.setprofile(None)
    return walk


if __name__ == "__main__":
    taken = take(sys.argv[1])
    print("\n".join(taken.lines()) if "--list" in sys.argv else json.dumps(taken.counts()))
