"""GEMM on one PE with both operands loaded first, then one dot."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

RESULTS = {}


def dot_kernel(a_ptr, b_ptr, out_ptr, M, K, N, tl):
    a = tl.load(a_ptr, (M, K), "f16")
    b = tl.load(b_ptr, (K, N), "f16")
    tl.store(out_ptr, tl.dot(a, b))


def run(torch):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((48, 80)).astype(np.float16)
    w = rng.standard_normal((80, 24)).astype(np.float16)
    one = DPPolicy(num_pes=1, num_cubes=1)
    a = torch.empty(x.shape, dp=one)
    b = torch.empty(w.shape, dp=one)
    out = torch.zeros((48, 24), dp=one)
    a.copy_(torch.from_numpy(x))
    b.copy_(torch.from_numpy(w))
    torch.launch("dot", dot_kernel, a, b, out, 48, 80, 24)
    RESULTS.update(x=x, w=w, out=out.numpy())
