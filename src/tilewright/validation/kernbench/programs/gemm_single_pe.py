"""GEMM on one PE: both operands stay in HBM and the scheduler streams them tile by tile."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

M, K, N = 32, 128, 32
RESULTS = {}


def gemm_kernel(a_ptr, b_ptr, out_ptr, M, K, N, tl, DTYPE="f16"):
    a = tl.ref(a_ptr, shape=(M, K), dtype=DTYPE)
    b = tl.ref(b_ptr, shape=(K, N), dtype=DTYPE)
    done = tl.composite(op="gemm", a=a, b=b, out_ptr=out_ptr)
    tl.wait(done)


def run(torch):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((M, K)).astype(np.float16)
    w = rng.standard_normal((K, N)).astype(np.float16)
    one = DPPolicy(cube="replicate", pe="replicate", num_pes=1, num_cubes=1)
    a = torch.zeros((M, K), dtype="f16", dp=one, name="a")
    b = torch.zeros((K, N), dtype="f16", dp=one, name="b")
    out = torch.empty((M, N), dtype="f16", dp=one, name="out")
    a.copy_(torch.from_numpy(x))
    b.copy_(torch.from_numpy(w))
    torch.launch("gemm_single_pe", gemm_kernel, a, b, out, M, K, N)
    RESULTS.update(x=x, w=w, out=out.numpy())
