"""Programs whose kernels and host calls are odd: wrong, endless, oversized, or all of it."""

from pathlib import Path
from textwrap import indent

from tests.fuzz.command import run_command
from tests.fuzz.generator import Random

__all__ = ("run_program_file",)

HEAD = """
import numpy as np
import tilewright.language as tl
from tilewright.host import DPPolicy, LocalShard, LocalSize

ROWS = DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise")


def kernel(x, n):
    i = tl.program_id(0)
    p = tl.arange(0, 8)
    v = tl.load(x + p)
"""
KERNEL = (
    "v = tl.load(x + p)", "tl.store(x + p, v)", "tl.store(x + p, v * 2.0)", "v = v + p",
    "v = v / 0.0", "v = tl.exp(v * 1e30)", "v = tl.sum(v)", "v = tl.max(v, axis=0)",
    "p = p + 10**6", "p = p - 4", "p = tl.arange(0, 7)", "p = p % 3",
    "v = tl.load(x, shape=(n,))", "v = tl.load(x, shape=(8, 8))",
    "v = tl.load(x + p, mask=p < 3)", "tl.store(x + p, v, mask=p > i)", "tl.send('E', v)",
    "v = tl.recv('W', shape=(8,), dtype='f32')",
    "v = tl.recv_async('N', shape=(8,), dtype='f32')", "yield v", "return v",
    "while True:\n    v = tl.load(x + p)", "while True:\n    tl.store(x + p, v)",
    "while tl.load(x) == 0.0:\n    pass", "for step in range(10**6):\n    v = v + 1.0",
    "torch.launch(kernel, x, n)", "kernel(x, n)", "1 // 0", "raise SystemExit(3)", "undefined",
    "print(v)", "assert False", "v = v.to('f99')", "v = tl.dot(v, v)", "x = None",
    "i = tl.program_id(7)", "tl.atomic_add(x + p, v)", "tl.nothing(v)", "v[0]",
    "if v > 0:\n    v = v - 1", "if tl.load(x) > 0:\n    v = v - 1", "n = n * 10**9", "p = v",
    "v = v @ v", "tl.wait(v)", "tl.composite('gemm', v, v, x, tile_shape=(8, 8, 8))", "del v",
    "v = np.ones(8)", "v = None", "v = 'text'", "v = tl.ref(x, (8, 8))", "globals().clear()",
)  # fmt: skip
HOST = (
    "x.numpy()", "x[0]", "x[10**9]", "x.copy_(torch.from_numpy(np.ones(3)))",
    "x = x.reshape(3, -1)", "torch.launch(kernel, LocalShard(x), {size})",
    "torch.launch(kernel, LocalShard(x), {size}, 5)",
    "torch.launch(kernel, x, {size}, grid=({grid},))",
    "torch.launch(kernel, x, 1, grid=({grid}, {grid}))",
    "torch.launch(kernel, LocalShard(x), LocalSize(x, 0))", "torch.launch(kernel, None, 1)",
    "torch.launch(kernel, LocalShard(x), 8, wait=False)",
    "torch.launch('name', kernel, LocalShard(x), 8)",
    "torch.launch(lambda y: None, LocalShard(x))", "torch.launch(8)",
    "x = torch.empty(({size},), 'f32')", "x = torch.zeros(({size}, {size}), 'f16', dp=ROWS)",
    "x = torch.zeros({size}, 'f99')", "x = None", "torch.install_ipcq(topology='ring_1d')",
    "torch.distributed.init_process_group()", "torch.distributed.all_reduce(x)", "torch.nothing",
    "torch.cleanup()", "raise KeyError('x')", "while x is not None:\n    x = None",
    "torch.wait_all()", "x.free()", "yield x", "return 7",
)  # fmt: skip
SIZES = (0, 1, 3, 8, 64, 1000, 2**14, 2**20, 2**31, 2**40, 2**62, 10**20, -1, 1.5, "'x'", None)
GRIDS = (0, 1, 2, 16, 64, 1000, 10**9, 2**62, -1, "x", None)
LIMITS = ("commands=300", "events=50000", "programs=2000", "time=1 ms")


def run_program_file(rng: Random, folder: Path) -> None:
    """Write a program of random lines and run it, under limits that end an endless one soon."""
    del folder
    kernel = [rng.choice(KERNEL) for _ in range(rng.randint(1, 4))]
    host = [rng.choice(HOST) for _ in range(rng.choice((0, 0, 1, 2)))]
    size, grid = rng.choice(SIZES), rng.choice(GRIDS)
    first = f"x = torch.zeros((16, {rng.choice((8, 64, size))}), 'f32', dp=ROWS)"
    calls = [line.format(size=size, grid=grid) for line in (first, *host)]
    calls.insert(rng.randint(1, len(calls)), "torch.launch(kernel, LocalShard(x), 8)")
    text = f"{HEAD}{_body(kernel)}\n\ndef run(torch):\n{_body(calls)}\n"
    Path("program.py").write_text(text)
    options = [word for limit in LIMITS for word in ("--limit", limit)]
    flags = [flag for flag in ("--sanitize", "--no-data", "--json") if rng.random() < 0.3]
    run_command("run", "program.py", "--once", "--machine", "ahbm-small", *options, *flags)


def _body(lines: list[str]) -> str:
    return indent("\n".join(lines), "    ")
