"""Products x w on one PE, over the PEs of a cube and over cubes: a bench for each."""

from functools import partial

import numpy as np
from kernbench.benches.registry import bench
from kernbench.policy.placement.dp import DPPolicy

ITEM = 2  # bytes of an f16
RESULTS = {}


def gemm_kernel(a_ptr, b_ptr, out_ptr, M, K, N, tl, DTYPE="f16"):
    a = tl.ref(a_ptr, shape=(M, K), dtype=DTYPE)
    b = tl.ref(b_ptr, shape=(K, N), dtype=DTYPE)
    done = tl.composite(op="gemm", a=a, b=b, out_ptr=out_ptr)
    tl.wait(done)


def dot_kernel(a_ptr, b_ptr, out_ptr, M, K, N, tl):
    a = tl.load(a_ptr, (M, K), "f16")
    b = tl.load(b_ptr, (K, N), "f16")
    tl.store(out_ptr, tl.dot(a, b))


def columns_kernel(x_ptr, w_ptr, out_ptr, M, K, N, tl, TILE=None):
    # N: the launch gives the kernel the columns of one cube where cubes split them
    pes = tl.num_programs(0)
    part = tl.program_id(1) * pes + tl.program_id(0)
    columns = N // pes
    x = tl.load(x_ptr, shape=(M, K), dtype="f16")
    w = tl.ref(w_ptr + part * K * columns * ITEM, shape=(K, columns), dtype="f16")
    out = out_ptr + part * M * columns * ITEM
    tl.wait(tl.composite(op="gemm", a=x, b=w, out_ptr=out, tile_shape=TILE))


def rows_kernel(x_ptr, w_ptr, out_ptr, M, K, N, tl):
    pe = tl.program_id(axis=0)
    rows = M // tl.num_programs(axis=0)
    x = tl.ref(x_ptr + pe * rows * K * ITEM, (rows, K), "f16")
    w = tl.load(w_ptr, (K, N), "f16")
    out = out_ptr + pe * rows * N * ITEM
    handle = tl.composite("gemm", x, w, out)
    tl.wait(handle)


def multiply(torch, name, kernel, seed, sizes, x_dp, w_dp, out_dp, scale=1.0):
    m, k, n = sizes
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, k)).astype(np.float16)
    w = (rng.standard_normal((k, n)) * scale).astype(np.float16)
    a = torch.zeros((m, k), dtype="f16", dp=x_dp, name="x")
    b = torch.empty(w.shape, dp=w_dp)
    out = torch.empty((m, n), dtype="f16", dp=out_dp, name="out")
    a.copy_(torch.from_numpy(x))
    b.copy_(torch.from_numpy(w))
    torch.launch(name, kernel, a, b, out, m, k, n)
    RESULTS.update(x=x, w=w, out=out.numpy())


@bench(name="gemm_single_pe", description="both operands stay in HBM and are streamed tile by tile")
def gemm_single_pe(torch):
    one = DPPolicy(cube="replicate", pe="replicate", num_pes=1, num_cubes=1)
    multiply(torch, "gemm_single_pe", gemm_kernel, 1, (32, 128, 32), one, one, one)


@bench(name="gemm_load_load", description="both operands loaded first, then one dot")
def gemm_load_load(torch):
    one = DPPolicy(num_pes=1, num_cubes=1)
    multiply(torch, "dot", dot_kernel, 2, (48, 80, 24), one, one, one)


@bench(name="qkv_columns", description="columns split over the PEs of a cube, by program_id")
def qkv_columns(torch):
    copies = DPPolicy(cube="replicate", pe="replicate", num_cubes=1)
    columns = DPPolicy(cube="replicate", pe="column_wise", num_cubes=1)
    multiply(torch, "qkv_columns", columns_kernel, 3, (32, 64, 96), copies, columns, columns)


@bench(name="qkv_rows", description="rows split over the PEs of a cube, by program_id")
def qkv_rows(torch):
    rows = DPPolicy(cube="replicate", pe="row_wise", num_cubes=1)
    copies = DPPolicy(cube="replicate", pe="replicate", num_cubes=1)
    multiply(torch, "qkv_rows", rows_kernel, 4, (64, 48, 72), rows, copies, rows)


@bench(name="gpt3_qkv", description="GPT-3's QKV, smaller: columns over all cubes and their PEs")
def gpt3_qkv(torch):
    copies = DPPolicy(cube="replicate", pe="replicate")
    columns = DPPolicy(cube="column_wise", pe="column_wise")
    sizes, kernel = (16, 256, 3 * 256), partial(columns_kernel, TILE=(16, 64, 16))
    multiply(torch, "gpt3_qkv", kernel, 5, sizes, copies, columns, columns, 1 / 16)
