"""Both shapes of DPPolicy: the older one splits over SIPs too, the newer one over cubes and PEs."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

ROWS, COLUMNS = 24, 32
RESULTS = {}


def square_kernel(x_ptr, out_ptr, rows, columns, tl):
    # rows of one cube of one SIP: the launch divides by the SIPs and cubes that split them
    rows = rows // tl.num_programs(0)
    at = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * rows * columns * 2
    x = tl.load(x_ptr + at, (rows, columns), "f16")
    tl.store(out_ptr + at, x * x)


def run(torch):
    x = np.random.default_rng(14).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    older = DPPolicy(sip="row_wise", cube="replicate", pe="row_wise", num_sips=2, num_cubes=1)
    newer = DPPolicy(cube="replicate", pe="row_wise", num_cubes=1, num_pes=2)
    for name, dp in {"older": older, "newer": newer}.items():
        a = torch.empty(x.shape, dp=dp)
        a.copy_(torch.from_numpy(x))
        out = torch.zeros(x.shape, dp=dp)
        torch.launch(f"square_{name}", square_kernel, a, out, ROWS, COLUMNS)
        RESULTS[name] = out.numpy()
    RESULTS["x"] = x
