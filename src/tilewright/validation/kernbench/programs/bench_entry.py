"""A bench as KernBench registers it: the decorated function is what is run."""

import numpy as np
from kernbench.benches.registry import bench
from kernbench.policy.placement.dp import DPPolicy

RESULTS = {}


def _scale_kernel(x_ptr, out_ptr, n, factor, tl):
    tl.store(out_ptr, tl.load(x_ptr, (n,), "f32") * factor)


@bench(name="scale-vector", description="multiplies 256 numbers on one PE")
def run(torch):
    x = np.linspace(-1, 1, 256, dtype=np.float32)
    one = DPPolicy(num_pes=1, num_cubes=1)
    a = torch.empty((256,), dtype="f32", dp=one)
    out = torch.empty((256,), dtype="f32", dp=one)
    a.copy_(torch.from_numpy(x))
    torch.launch("scale", _scale_kernel, a, out, 256, 2.5)
    RESULTS.update(x=x, out=out.numpy())
