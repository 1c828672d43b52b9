"""The programs on torch itself: one set of processes for all of them.

Run as ``python -m tests.collectives.programs.gloo WORLD FOLDER``.
"""

import pickle
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from tests.collectives.programs import PROGRAMS


def work(rank: int, world: int, folder: str) -> None:
    """Leaves in the folder what the rank ends with, by program."""
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    results = {name: program(torch, dist, rank, world) for name, program in PROGRAMS.items()}
    (Path(folder) / f"rank{rank}").write_bytes(pickle.dumps(results))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    num_ranks = int(sys.argv[1])
    spawn(work, args=(num_ranks, sys.argv[2]), nprocs=num_ranks)  # type: ignore[no-untyped-call]
