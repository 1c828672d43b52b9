"""Attention of one head, its queries split over PEs; and decode attention over a page table.

The decode kernel reads which pages a request has, and how many. A request of a batch is a PE's;
requests have different lengths, so every PE takes its own way through the loop.
"""

import numpy as np
from kernbench.benches.registry import bench
from kernbench.policy.placement.dp import DPPolicy

QUERIES, KEYS, HEAD = 32, 24, 16
REQUESTS, WIDTH, PAGE, MOST = 4, 32, 8, 5
RESULTS = {}


def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, QUERIES, KEYS, HEAD, scale, tl):
    rows = QUERIES // tl.num_programs(0)
    at = tl.program_id(0) * rows * HEAD * 2
    q = tl.load(q_ptr + at, (rows, HEAD), "f16")
    k = tl.load(k_ptr, (KEYS, HEAD), "f16")
    v = tl.load(v_ptr, (KEYS, HEAD), "f16")
    scores = tl.dot(q, tl.trans(k)) * scale
    tl.store(out_ptr + at, tl.dot(tl.softmax(scores), v))


def decode_kernel(q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, HEAD, PAGE, MOST, scale, tl):
    request = tl.program_id(0)
    page_bytes = PAGE * HEAD * 2
    length = int(tl.load(length_ptr + request * 4, (1,), "i32"))
    q = tl.load(q_ptr + request * HEAD * 2, (1, HEAD), "f16")
    best = tl.full((1,), -1.0e4, "f32")
    total = tl.zeros((1,), "f32")
    acc = tl.zeros((1, HEAD), "f32")
    for index in range(tl.cdiv(length, PAGE)):
        page = int(tl.load(table_ptr + (request * MOST + index) * 4, (1,), "i32"))
        if page < 0:
            continue  # a page that was swapped out
        tokens = min(PAGE, length - index * PAGE)
        k = tl.load(k_ptr + page * page_bytes, (tokens, HEAD), "f16")
        v = tl.load(v_ptr + page * page_bytes, (tokens, HEAD), "f16")
        scores = tl.cast(tl.dot(q, tl.trans(k)), "f32") * scale
        newest = tl.maximum(best, tl.max(scores, axis=1))
        weights = tl.exp(scores - newest)
        kept = tl.exp(best - newest)
        total = total * kept + tl.sum(weights, axis=1)
        acc = acc * kept + tl.cast(tl.dot(tl.cast(weights, "f16"), v), "f32")
        best = newest
    tl.store(out_ptr + request * HEAD * 4, acc / total)


def place(torch, values, dps):
    placed = []
    for name, array in values.items():
        dtype = "i32" if array.dtype == np.int32 else "f16"
        tensor = torch.empty(array.shape, dtype, dp=dps[name], name=name)
        tensor.copy_(torch.from_numpy(array))
        placed.append(tensor)
    return placed


@bench(name="attention", description="dot, softmax, dot")
def attention(ctx):
    rng = np.random.default_rng(8)
    rows, copies = DPPolicy(pe="row_wise", num_cubes=1), DPPolicy(num_cubes=1)
    shapes = {"q": (QUERIES, HEAD), "k": (KEYS, HEAD), "v": (KEYS, HEAD)}
    values = {name: rng.standard_normal(size).astype(np.float16) for name, size in shapes.items()}
    placed = place(ctx, values, {"q": rows, "k": copies, "v": copies})
    out = ctx.zeros((QUERIES, HEAD), "f16", dp=rows, name="out")
    ctx.launch("attention", attention_kernel, *placed, out, QUERIES, KEYS, HEAD, HEAD**-0.5)
    RESULTS.update(values, out=out.numpy())


@bench(name="paged", description="decode attention over a page table")
def paged(torch):
    rng = np.random.default_rng(9)
    lengths = np.array([5, 40, 17, 24], np.int32)
    order = rng.permutation(REQUESTS * MOST).astype(np.int32).reshape(REQUESTS, MOST)
    order[3, 1] = -1
    pool = (REQUESTS * MOST * PAGE, WIDTH)
    shapes = {"q": (REQUESTS, WIDTH), "k": pool, "v": pool}
    values = {name: rng.standard_normal(size).astype(np.float16) for name, size in shapes.items()}
    values |= {"table": order, "lengths": lengths}
    rows = DPPolicy(pe="row_wise", num_cubes=1, num_pes=REQUESTS)
    copies = DPPolicy(num_cubes=1, num_pes=REQUESTS)
    placed = place(torch, values, dict.fromkeys(values, rows) | {"lengths": copies})
    out = torch.zeros((REQUESTS, WIDTH), "f32", dp=rows, name="out")
    torch.launch("paged_decode", decode_kernel, *placed, out, WIDTH, PAGE, MOST, WIDTH**-0.5)
    RESULTS.update(values, out=out.numpy())
