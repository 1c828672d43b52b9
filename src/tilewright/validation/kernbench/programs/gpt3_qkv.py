"""GPT-3's QKV projection, smaller: columns split over all cubes of a SIP and the PEs of each.

The launch gives the kernel the columns of one cube for N, since the cubes split them.
"""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

TOKENS, HIDDEN = 16, 256
ITEM = 2  # bytes of an f16
RESULTS = {}


def gpt3_qkv_kernel(x_ptr, w_ptr, out_ptr, M, K, N, tl):
    pes = tl.num_programs(0)
    part = tl.program_id(1) * pes + tl.program_id(0)
    columns = N // pes
    x = tl.load(x_ptr, (M, K), "f16")
    w = tl.ref(w_ptr + part * K * columns * ITEM, (K, columns), "f16")
    done = tl.composite(
        op="gemm", a=x, b=w, out_ptr=out_ptr + part * M * columns * ITEM, tile_shape=(16, 64, 16)
    )
    tl.wait(done)


def run(torch):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((TOKENS, HIDDEN)).astype(np.float16)
    w = (rng.standard_normal((HIDDEN, 3 * HIDDEN)) / 16).astype(np.float16)
    copies = DPPolicy(cube="replicate", pe="replicate")
    columns = DPPolicy(cube="column_wise", pe="column_wise")
    a = torch.empty((TOKENS, HIDDEN), dtype="f16", dp=copies, name="tokens")
    b = torch.empty((HIDDEN, 3 * HIDDEN), dtype="f16", dp=columns, name="w_qkv")
    out = torch.empty((TOKENS, 3 * HIDDEN), dtype="f16", dp=columns, name="qkv")
    a.copy_(torch.from_numpy(x))
    b.copy_(torch.from_numpy(w))
    torch.launch("gpt3_qkv", gpt3_qkv_kernel, a, b, out, TOKENS, HIDDEN, 3 * HIDDEN)
    RESULTS.update(x=x, w=w, out=out.numpy())
