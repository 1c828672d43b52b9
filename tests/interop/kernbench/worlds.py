"""Process groups of KernBench programs for tests: a file of collectives, workers, tiles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.interop.kernbench.contexts import context, two_sips
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.placement import DPPolicy
from tilewright.interop.kernbench.tensor import Tensor

__all__ = ("ONE", "RING", "ccl_file", "filled", "run_ranks")

ONE = DPPolicy(num_cubes=1, num_pes=1)
RING = "kernbench.ccl.algorithms.ring_allreduce"


def ccl_file(folder: Path, module: str = RING, **keys: Any) -> Path:
    """Write a file with one algorithm, ``mine``, and return its path."""
    lines = ["defaults:", "  algorithm: mine", "algorithms:", "  mine:", f"    module: {module}"]
    lines += [f"    {key}: {value}" for key, value in keys.items()]
    file = folder / "ccl.yaml"
    file.write_text("\n".join(lines) + "\n")
    return file


def filled(
    torch: RuntimeContext, values: Any, dp: DPPolicy = ONE, name: str | None = None
) -> Tensor:
    """Return a tensor that holds an array."""
    host = torch.from_numpy(values)
    return torch.empty(host.shape, host.dtype, dp=dp, name=name).copy_(host)


def run_ranks(work: Callable[[int, RuntimeContext], Any], **options: Any) -> dict[int, Any]:
    """Call ``work(rank, torch)`` in a worker for each of two SIPs; return what each returned.

    The program initialises the group with the options before its workers start.
    """
    torch, found = context(two_sips()), {}
    torch.distributed.init_process_group(backend="ahbm", **options)

    def worker(rank: int) -> None:
        torch.ahbm.set_device(rank)
        found[rank] = work(rank, torch)

    torch.multiprocessing.spawn(worker, nprocs=torch.distributed.get_world_size())
    return found
