"""Virtual addresses: every PE computes addresses from one base and reads other PEs' shards.

Rows are split over cubes and PEs into shards of 48 bytes; columns over PEs, where each shard is
row-major in itself.
"""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

WORDS = 12  # i32 numbers of a row
RESULTS = {}


def rows_kernel(x_ptr, out_ptr, world, words, tl):
    me = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    row_bytes = words * 4
    following = x_ptr + (me + 1) % world * row_bytes
    farthest = x_ptr + (me + world // 2) % world * row_bytes
    low = tl.load(following, (4,), "i32")  # the head of another PE's shard
    high = tl.load(farthest + row_bytes - 16, (4,), "i32")  # the tail of one farther away
    own = tl.load(x_ptr + me * row_bytes + 16, (4,), "i32")
    tl.store(out_ptr + me * row_bytes, low)
    tl.store(out_ptr + me * row_bytes + 16, high)
    tl.store(out_ptr + me * row_bytes + 32, own + high)


def columns_kernel(y_ptr, out_ptr, rows, columns, tl):
    pes = tl.num_programs(0)
    width = columns // pes
    shard = rows * width * 2
    left = (tl.program_id(0) - 1) % pes
    # two shards' bytes, each row-major: of the left neighbour all rows but the first
    tile = tl.load(y_ptr + left * shard + width * 2, (rows - 1, width), "f16")
    tl.store(out_ptr + tl.program_id(0) * shard, tile)


def run(torch):
    layout = torch.spec["cube"]["pe_layout"]
    pes = layout["pe_per_corner"] * len(layout["corners"])
    cubes = 2
    world = cubes * pes
    x = np.arange(world * WORDS, dtype=np.int32).reshape(world, WORDS)
    rows = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes)
    a = torch.zeros(x.shape, dtype="i32", dp=rows, name="x")
    out = torch.zeros(x.shape, dtype="i32", dp=rows, name="out")
    a.copy_(torch.from_numpy(x))
    torch.launch("va_rows", rows_kernel, a, out, world, WORDS, _auto_dim_remap=False)

    y = np.arange(5 * 6 * pes, dtype=np.float16).reshape(5, 6 * pes)
    columns = DPPolicy(pe="column_wise", num_cubes=1)
    b = torch.zeros(y.shape, dp=columns, name="y")
    moved = torch.zeros(y.shape, dp=columns, name="moved")
    b.copy_(torch.from_numpy(y))
    torch.launch("va_columns", columns_kernel, b, moved, 5, 6 * pes)
    RESULTS.update(x=x, out=out.numpy(), y=y, pes=pes, moved=moved.numpy())
