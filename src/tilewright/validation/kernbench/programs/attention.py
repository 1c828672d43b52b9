"""Attention of one head, its queries split over PEs: dot, softmax, dot."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

QUERIES, KEYS, HEAD = 32, 24, 16
RESULTS = {}


def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, QUERIES, KEYS, HEAD, scale, tl):
    rows = QUERIES // tl.num_programs(0)
    at = tl.program_id(0) * rows * HEAD * 2
    q = tl.load(q_ptr + at, (rows, HEAD), "f16")
    k = tl.load(k_ptr, (KEYS, HEAD), "f16")
    v = tl.load(v_ptr, (KEYS, HEAD), "f16")
    scores = tl.dot(q, tl.trans(k)) * scale
    tl.store(out_ptr + at, tl.dot(tl.softmax(scores), v))


def run(ctx):
    rng = np.random.default_rng(8)
    rows = DPPolicy(pe="row_wise", num_cubes=1)
    copies = DPPolicy(num_cubes=1)
    values = {
        "q": rng.standard_normal((QUERIES, HEAD)).astype(np.float16),
        "k": rng.standard_normal((KEYS, HEAD)).astype(np.float16),
        "v": rng.standard_normal((KEYS, HEAD)).astype(np.float16),
    }
    placed = {}
    for name, array in values.items():
        placed[name] = ctx.empty(array.shape, "f16", dp=rows if name == "q" else copies, name=name)
        placed[name].copy_(ctx.from_numpy(array))
    out = ctx.zeros((QUERIES, HEAD), "f16", dp=rows, name="out")
    ctx.launch(
        "attention", attention_kernel, placed["q"], placed["k"], placed["v"], out,
        QUERIES, KEYS, HEAD, HEAD**-0.5,
    )  # fmt: skip
    RESULTS.update(values, out=out.numpy())
