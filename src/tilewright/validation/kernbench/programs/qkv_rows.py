"""QKV projection, rows split over the PEs of a cube: each PE finds its part by program_id."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

M, K, N = 64, 48, 72
ITEM = 2  # bytes of an f16
RESULTS = {}


def qkv_kernel(x_ptr, w_ptr, out_ptr, M, K, N, tl):
    pe = tl.program_id(axis=0)
    rows = M // tl.num_programs(axis=0)
    x = tl.ref(x_ptr + pe * rows * K * ITEM, (rows, K), "f16")
    w = tl.load(w_ptr, (K, N), "f16")
    out = out_ptr + pe * rows * N * ITEM
    handle = tl.composite("gemm", x, w, out)
    tl.wait(handle)


def run(torch):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((M, K)).astype(np.float16)
    w = rng.standard_normal((K, N)).astype(np.float16)
    rows = DPPolicy(cube="replicate", pe="row_wise", num_cubes=1)
    copies = DPPolicy(cube="replicate", pe="replicate", num_cubes=1)
    a = torch.zeros((M, K), dtype="f16", dp=rows)
    b = torch.zeros((K, N), dtype="f16", dp=copies)
    out = torch.empty((M, N), dtype="f16", dp=rows)
    a.copy_(torch.from_numpy(x))
    b.copy_(torch.from_numpy(w))
    torch.launch("qkv_rows", qkv_kernel, a, b, out, M, K, N)
    RESULTS.update(x=x, w=w, out=out.numpy())
