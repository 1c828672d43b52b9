"""DDP as PyTorch writes it: each worker joins the process group and names its device."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy
from kernbench.runtime_api.multiprocessing import spawn

ELEMENTS, STEPS = 64, 2
RESULTS = {}


def worker(rank, torch):
    torch.accelerator.set_device_index(rank)
    dist = torch.distributed
    dist.init_process_group(backend="ahbm")
    local = np.random.default_rng(10 + rank).integers(-4, 4, (1, ELEMENTS)).astype(np.float16)
    dp = DPPolicy(num_cubes=1, num_pes=1)
    grad = torch.empty((1, ELEMENTS), dtype="f16", dp=dp)
    grad.copy_(torch.from_numpy(local))
    for _ in range(STEPS):
        dist.all_reduce(grad)
        dist.barrier()
    RESULTS["local"][rank] = local
    RESULTS["out"][rank] = grad.numpy()
    device = torch.accelerator.current_device_index()
    RESULTS["seen"][rank] = (dist.get_rank(), dist.get_world_size(), device)


def run(torch):
    RESULTS.update(local={}, out={}, seen={}, steps=STEPS)
    RESULTS["before"] = torch.accelerator.current_device_index()
    spawn(worker, args=(torch,), nprocs=torch.spec["system"]["sips"]["count"])
