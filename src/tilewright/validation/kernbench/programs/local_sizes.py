"""Numbers that equal a global size: the kernel gets one cube's part, unless it is switched off."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

ROWS, COLUMNS, CUBES = 80, 12, 2
RESULTS = {}


def negate_kernel(x_ptr, out_ptr, rows, columns, tl):
    at = tl.program_id(1) * rows * columns * 2
    x = tl.load(x_ptr + at, (rows, columns), "f16")
    tl.store(out_ptr + at, x * -1.0)


def negate_all_kernel(x_ptr, out_ptr, rows, columns, cubes, tl):
    part = rows // cubes
    at = tl.program_id(1) * part * columns * 2
    tl.store(out_ptr + at, tl.load(x_ptr + at, (part, columns), "f16") * -1.0)


def run(torch):
    x = np.random.default_rng(13).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    dp = DPPolicy(cube="row_wise", pe="replicate", num_cubes=CUBES, num_pes=1)
    a = torch.empty(x.shape, dp=dp, name="x")
    a.copy_(torch.from_numpy(x))
    local = torch.zeros(x.shape, dp=dp, name="local")
    torch.launch("negate", negate_kernel, a, local, ROWS, COLUMNS)
    named = torch.zeros(x.shape, dp=dp, name="named")
    torch.launch("negate", negate_kernel, a, named, rows=ROWS, columns=COLUMNS)
    whole = torch.zeros(x.shape, dp=dp, name="whole")
    torch.launch("all", negate_all_kernel, a, whole, ROWS, COLUMNS, CUBES, _auto_dim_remap=False)
    RESULTS.update(x=x, local=local.numpy(), named=named.numpy(), whole=whole.numpy())
