"""Data-parallel training: a worker a SIP, each with gradients of its own, which are summed."""

import numpy as np
from kernbench.benches.registry import bench
from kernbench.policy.placement.dp import DPPolicy
from kernbench.runtime_api.multiprocessing import spawn

ELEMENTS, STEPS = 64, 2
RESULTS = {}


def reduce(rank, torch, seed, largest, steps):
    dist = torch.distributed
    values = np.random.default_rng(seed).integers(-largest, largest, (1, ELEMENTS))
    local = values.astype(np.float16)
    dp = DPPolicy(cube="replicate", pe="replicate", num_cubes=1, num_pes=1)
    grad = torch.empty((1, ELEMENTS), dtype="f16", dp=dp, name=f"grad{rank}")
    grad.copy_(torch.from_numpy(local))
    for _ in range(steps):
        dist.all_reduce(grad)
        if steps > 1:
            dist.barrier()
    RESULTS["local"][rank] = local
    RESULTS["out"][rank] = grad.numpy()


def launched_worker(rank, world_size, torch):
    torch.ahbm.set_device(rank)
    reduce(rank, torch, rank, 8, 1)
    RESULTS["seen"][rank] = (torch.distributed.get_rank(), world_size, torch.ahbm.current_device())


def joining_worker(rank, torch):
    torch.accelerator.set_device_index(rank)
    dist = torch.distributed
    dist.init_process_group(backend="ahbm")
    reduce(rank, torch, 10 + rank, 4, STEPS)
    device = torch.accelerator.current_device_index()
    RESULTS["seen"][rank] = (dist.get_rank(), dist.get_world_size(), device)


@bench(name="launcher", description="the process group once, then a worker a SIP")
def launcher(torch):
    RESULTS.update(local={}, out={}, seen={}, before=torch.ahbm.current_device())
    torch.distributed.init_process_group(backend="ahbm")
    world_size = torch.distributed.get_world_size()
    torch.multiprocessing.spawn(launched_worker, args=(world_size, torch), nprocs=world_size)


@bench(name="each-worker", description="as PyTorch writes it: each worker joins the process group")
def each_worker(torch):
    RESULTS.update(local={}, out={}, seen={}, steps=STEPS)
    RESULTS["before"] = torch.accelerator.current_device_index()
    spawn(joining_worker, args=(torch,), nprocs=torch.spec["system"]["sips"]["count"])
