"""One all_reduce over PEs by the algorithm of ccl.yaml: afterwards every shard is the sum."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

ELEMENTS = 32  # of a rank, f16
RESULTS = {}


def run(torch):
    dist = torch.distributed
    dist.init_process_group(backend="ahbm")
    world = dist.get_world_size()
    layout = torch.spec["cube"]["pe_layout"]
    pes = min(world, layout["pe_per_corner"] * len(layout["corners"]))
    tiles = np.random.default_rng(world).integers(-8, 8, (world, ELEMENTS)).astype(np.float16)
    dp = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=world // pes, num_pes=pes)
    t = torch.zeros(tiles.shape, dtype="f16", dp=dp, name="grad")
    t.copy_(torch.from_numpy(tiles))
    dist.all_reduce(t)
    RESULTS.update(tiles=tiles, out=t.numpy(), world=world, backend=dist.get_backend())
