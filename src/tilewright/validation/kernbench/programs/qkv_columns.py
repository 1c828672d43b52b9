"""QKV projection, columns split over the PEs of a cube: each PE finds its part by program_id."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

M, K, N = 32, 64, 96
ITEM = 2  # bytes of an f16
RESULTS = {}


def qkv_kernel(x_ptr, w_ptr, out_ptr, M, K, N, tl):
    pe = tl.program_id(0)
    columns = N // tl.num_programs(0)
    x = tl.load(x_ptr, shape=(M, K), dtype="f16")
    w = tl.ref(w_ptr + pe * K * columns * ITEM, shape=(K, columns), dtype="f16")
    out = out_ptr + pe * M * columns * ITEM
    tl.wait(tl.composite(op="gemm", a=x, b=w, out_ptr=out))


def run(torch):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((M, K)).astype(np.float16)
    w = rng.standard_normal((K, N)).astype(np.float16)
    copies = DPPolicy(cube="replicate", pe="replicate", num_cubes=1)
    columns = DPPolicy(cube="replicate", pe="column_wise", num_cubes=1)
    a = torch.zeros((M, K), dtype="f16", dp=copies, name="x")
    b = torch.zeros((K, N), dtype="f16", dp=columns, name="w")
    out = torch.empty((M, N), dtype="f16", dp=columns, name="qkv")
    a.copy_(torch.from_numpy(x))
    b.copy_(torch.from_numpy(w))
    torch.launch("qkv_columns", qkv_kernel, a, b, out, M, K, N)
    RESULTS.update(x=x, w=w, out=out.numpy())
