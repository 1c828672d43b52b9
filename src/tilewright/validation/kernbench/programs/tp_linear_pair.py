"""Two tensor-parallel layers: columns of the first, rows of the second, one sum over the ranks."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy
from kernbench.tp.layers import ColumnParallelLinear, RowParallelLinear
from kernbench.tp.parallel_state import (
    get_tensor_model_parallel_rank,
    get_tensor_model_parallel_world_size,
    initialize_model_parallel,
)

TOKENS, HIDDEN, INNER = 4, 16, 32
RESULTS = {}


def worker(rank, world_size, torch, x, first, second):
    torch.ahbm.set_device(rank)
    part = INNER // get_tensor_model_parallel_world_size()
    columns = slice(rank * part, (rank + 1) * part)
    up = ColumnParallelLinear(HIDDEN, INNER, bias=False, dtype="f16", torch=torch)
    down = RowParallelLinear(INNER, HIDDEN, bias=False, dtype="f16", torch=torch)
    up.weight.copy_(torch.from_numpy(first[:, columns]))
    down.weight.copy_(torch.from_numpy(second[columns, :]))
    tokens = torch.empty(x.shape, dtype="f16", dp=DPPolicy(num_cubes=1, num_pes=1))
    tokens.copy_(torch.from_numpy(x))
    RESULTS["out"][rank] = down(up(tokens)).numpy()
    RESULTS["seen"][rank] = (get_tensor_model_parallel_rank(), world_size, up.weight.shape)


def run(torch):
    rng = np.random.default_rng(11)
    x = rng.standard_normal((TOKENS, HIDDEN)).astype(np.float16)
    first = (rng.standard_normal((HIDDEN, INNER)) / 4).astype(np.float16)
    second = (rng.standard_normal((INNER, HIDDEN)) / 4).astype(np.float16)
    RESULTS.update(x=x, first=first, second=second, out={}, seen={})
    torch.distributed.init_process_group(backend="ahbm")
    world_size = torch.distributed.get_world_size()
    initialize_model_parallel(world_size)
    torch.multiprocessing.spawn(
        worker, args=(world_size, torch, x, first, second), nprocs=world_size
    )
