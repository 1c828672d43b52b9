"""A layer of two products on four PEs: the first launch leaves the activations for the second."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

TOKENS, HIDDEN, INNER, PES = 16, 32, 64, 4
RESULTS = {}


def up_kernel(x_ptr, w_ptr, out_ptr, M, K, N, tl):
    columns = N // tl.num_programs(0)
    pe = tl.program_id(0)
    x = tl.load(x_ptr, (M, K), "f16")
    w = tl.load(w_ptr + pe * K * columns * 2, (K, columns), "f16")
    hidden = tl.dot(x, w)
    tl.store(out_ptr + pe * M * columns * 2, tl.maximum(hidden, 0.0))


def down_kernel(h_ptr, w_ptr, out_ptr, M, K, N, tl):
    # the inner dimension lies in column blocks, one a PE: a PE reads all of them
    rows = M // tl.num_programs(0)
    pes = tl.num_programs(0)
    part = K // pes
    total = tl.zeros((rows, N), "f32")
    for block in range(pes):
        at = h_ptr + (block * M + tl.program_id(0) * rows) * part * 2
        h = tl.load(at, (rows, part), "f16")
        w = tl.load(w_ptr + block * part * N * 2, (part, N), "f16")
        total = total + tl.dot(h, w)
    tl.store(out_ptr + tl.program_id(0) * rows * N * 4, total)


def run(torch):
    rng = np.random.default_rng(15)
    x = rng.standard_normal((TOKENS, HIDDEN)).astype(np.float16)
    first = (rng.standard_normal((HIDDEN, INNER)) / 4).astype(np.float16)
    second = (rng.standard_normal((INNER, HIDDEN)) / 4).astype(np.float16)
    copies = DPPolicy(num_cubes=1, num_pes=PES)
    columns = DPPolicy(pe="column_wise", num_cubes=1, num_pes=PES)
    rows = DPPolicy(pe="row_wise", num_cubes=1, num_pes=PES)
    a = torch.empty(x.shape, dp=copies)
    up = torch.empty(first.shape, dp=columns)
    hidden = torch.empty((TOKENS, INNER), dp=columns)
    down = torch.empty(second.shape, dp=rows)
    out = torch.empty((TOKENS, HIDDEN), "f32", dp=rows)
    for tensor, values in ((a, x), (up, first), (down, second)):
        tensor.copy_(torch.from_numpy(values))
    pending = torch.launch("up", up_kernel, a, up, hidden, TOKENS, HIDDEN, INNER, _defer_wait=True)
    for handle, _sip, meta in pending:
        torch.wait(handle, _meta=meta)
    torch.launch("down", down_kernel, hidden, down, out, TOKENS, INNER, HIDDEN)
    RESULTS.update(x=x, first=first, second=second, hidden=hidden.numpy(), out=out.numpy())
