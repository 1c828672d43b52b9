"""The cases: each prepares itself and returns the call whose instructions are counted.

As a program (``python -m tools.count.cases NAME once|not``) it prepares a case and makes the call
once or not at all: the difference of the two counts is that of the call.
"""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from tilewright.bench.peers.tutorial_kernels import matmul_kernel
from tilewright.cli.main import main
from tilewright.engine import EngineKind
from tilewright.host import DPPolicy, Interleave, RuntimeContext
from tilewright.machine import build_machine, parse_machine
from tilewright.validation.engine_run import run_closed, run_open
from tilewright.validation.workload import MeshSpec, closed_loop, mesh_load

Call = Callable[[], object]
SIDE = 8  # of the mesh
SIZE, TILE = 256, 32  # of the product
ELEMENTS = 16_384  # of the all-reduce: 64 KiB
STEP = ("--machine", "ahbm-small", "--batch", "2", "--context", "2048", "--phases", "1")


def engine_open() -> Call:
    load = mesh_load(MeshSpec(SIDE), 4_000, 0.5, 1)
    return lambda: run_open(load, EngineKind.NATIVE)


def engine_closed() -> Call:
    load = closed_loop(MeshSpec(SIDE), 40, 1)
    return lambda: run_closed(load, EngineKind.NATIVE)


def engine_finite() -> Call:
    load = mesh_load(MeshSpec(SIDE, buffer_flits=128, round_robin=True), 4_000, 0.5, 1)
    return lambda: run_open(load, EngineKind.NATIVE)


def triton_matmul() -> Call:
    context = RuntimeContext("ahbm-small", "sip:0")
    pages = DPPolicy(pe=Interleave(65_536), num_cubes=1)
    a, b, out = (context.zeros((SIZE, SIZE), "f32", dp=pages) for _ in range(3))
    sizes = (SIZE, SIZE, SIZE, TILE, TILE, TILE, 4)
    grid = ((SIZE // TILE) ** 2,)
    return lambda: context.launch(matmul_kernel, a, b, out, *sizes, grid=grid)


def all_reduce() -> Call:
    spec = parse_machine("ahbm-small", ["sip.count=2", "sip.columns=1", "sip.rows=1"])
    context = RuntimeContext(build_machine(spec))

    def worker(rank: int) -> None:
        context.ahbm.set_device(rank)
        context.distributed.init_process_group("ahbm")
        context.distributed.all_reduce(context.from_numpy(np.ones(ELEMENTS, np.float32)))

    return lambda: context.multiprocessing.spawn(worker, nprocs=2)


def attention_step() -> Call:
    def step() -> None:
        with redirect_stdout(StringIO()):
            main(["attention", "run", "--backend", "machine", "--no-data", *STEP])

    return step


CASES = {
    case.__name__: case
    for case in (
        *(engine_open, engine_closed, engine_finite),
        *(triton_matmul, all_reduce, attention_step),
    )
}


if __name__ == "__main__":
    call = CASES[sys.argv[1]]()
    if sys.argv[2] == "once":
        call()
