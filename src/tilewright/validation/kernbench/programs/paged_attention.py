"""Decode attention over a page table: the kernel reads which pages a request has, and how many.

A request of a batch is a PE's; requests have different lengths, so every PE takes its own way
through the loop.
"""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

REQUESTS, HEAD, PAGE, MOST = 4, 32, 8, 5
RESULTS = {}


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


def run(torch):
    rng = np.random.default_rng(9)
    lengths = np.array([5, 40, 17, 24], np.int32)
    order = rng.permutation(REQUESTS * MOST).astype(np.int32).reshape(REQUESTS, MOST)
    order[3, 1] = -1
    q = rng.standard_normal((REQUESTS, HEAD)).astype(np.float16)
    pool = (REQUESTS * MOST * PAGE, HEAD)
    k = rng.standard_normal(pool).astype(np.float16)
    v = rng.standard_normal(pool).astype(np.float16)
    rows = DPPolicy(pe="row_wise", num_cubes=1, num_pes=REQUESTS)
    tensors = []
    for name, array in {"q": q, "k": k, "v": v, "table": order}.items():
        dtype = "i32" if name == "table" else "f16"
        tensor = torch.empty(array.shape, dtype, dp=rows, name=name)
        tensor.copy_(torch.from_numpy(array))
        tensors.append(tensor)
    copies = DPPolicy(num_cubes=1, num_pes=REQUESTS)
    counted = torch.empty((REQUESTS,), "i32", dp=copies, name="lengths")
    counted.copy_(torch.from_numpy(lengths))
    out = torch.zeros((REQUESTS, HEAD), "f32", dp=rows, name="out")
    torch.launch(
        "paged_decode", decode_kernel, *tensors, counted, out, HEAD, PAGE, MOST, HEAD**-0.5
    )
    RESULTS.update(q=q, k=k, v=v, table=order, lengths=lengths, out=out.numpy())
