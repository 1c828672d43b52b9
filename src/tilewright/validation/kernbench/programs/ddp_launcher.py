"""DDP launcher: the process group once, then a worker a SIP, each with gradients of its own."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

ELEMENTS = 64
RESULTS = {}


def worker(rank, world_size, torch):
    torch.ahbm.set_device(rank)
    dist = torch.distributed
    local = np.random.default_rng(rank).integers(-8, 8, (1, ELEMENTS)).astype(np.float16)
    dp = DPPolicy(cube="replicate", pe="replicate", num_cubes=1, num_pes=1)
    grad = torch.zeros((1, ELEMENTS), dtype="f16", dp=dp, name=f"grad{rank}")
    grad.copy_(torch.from_numpy(local))
    dist.all_reduce(grad)
    RESULTS["local"][rank] = local
    RESULTS["out"][rank] = grad.numpy()
    RESULTS["seen"][rank] = (dist.get_rank(), world_size, torch.ahbm.current_device())


def run(torch):
    RESULTS.update(local={}, out={}, seen={}, before=torch.ahbm.current_device())
    torch.distributed.init_process_group(backend="ahbm")
    world_size = torch.distributed.get_world_size()
    torch.multiprocessing.spawn(worker, args=(world_size, torch), nprocs=world_size)
