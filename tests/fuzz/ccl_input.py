"""Files ``ccl.yaml`` with random changes: read by both readers, and by a program that uses one."""

from pathlib import Path

import tilewright
from tests.fuzz.command import run_command
from tests.fuzz.generator import Random
from tests.fuzz.mutation import mutated_bytes, mutated_yaml
from tilewright.collectives.config import parse_config
from tilewright.errors import TilewrightError
from tilewright.interop.kernbench.ccl.config import (
    load_algorithm,
    load_ccl_config,
    resolve_algorithm_config,
)

__all__ = ("run_ccl_file",)

SOURCE = Path(tilewright.__file__).parent
EVERYTHING = """
defaults:
  algorithm: ring
  buffer_kind: tcm
  backpressure: sleep
  ipcq_credit_size_bytes: 16
  n_slots: 4
  slot_size: 4096
  topology: ring_1d
  world_size: 4
  n_elem: 8
  dtype: f16
  w: 2
  h: 2
  vc_chunk_size: 256
  root_cube: 0
algorithms:
  ring:
    topology: ring_1d
    n_slots: 8
    buffer_kind: sram
  direct:
    slot_size: 1024
  mine:
    module: tilewright.collectives.algorithms.ring:plan_ring
    operations: [all_reduce, all_gather]
  theirs:
    module: kernbench.ccl.algorithms.ring_allreduce
    topology: ring_1d
    world_size: 4
"""
PROGRAM = """
import numpy as np

def run(torch):
    places = [(0, 0, pe) for pe in range({ranks})]
    torch.distributed.init_process_group(rank_to_pe=places, ccl_yaml="ccl.yaml")
    tensor = torch.from_numpy(np.ones({size}, np.float32))
    torch.distributed.all_reduce(tensor)
    if {install}:
        torch.install_ipcq(ccl_yaml="ccl.yaml")
"""


def run_ccl_file(rng: Random, folder: Path) -> None:
    """Read a file as our process groups and as KernBench do, or run a program with it."""
    del folder
    bases = (
        EVERYTHING,
        EVERYTHING,
        EVERYTHING,
        (SOURCE / "collectives/ccl.yaml").read_text("utf-8"),
        (SOURCE / "interop/kernbench/ccl/ccl.yaml").read_text("utf-8"),
    )
    content = mutated_yaml(rng, rng.choice(bases)).encode("utf-8", "replace")
    if rng.random() < 0.1:
        content = mutated_bytes(rng, content)
    file = Path("ccl.yaml")
    file.write_bytes(content)
    _read(file)
    if rng.random() < 0.5:
        numbers = {"ranks": rng.choice((1, 2, 4)), "size": rng.choice((1, 5, 1000))}
        Path("program.py").write_text(PROGRAM.format(install=rng.random() < 0.3, **numbers))
        run_command("run", "program.py", "--machine", "ahbm-small", "--once", "--json")


def _read(file: Path) -> None:
    try:
        parse_config(file)
        config = load_ccl_config(file)
    except TilewrightError:
        return
    for name in (None, *(config["algorithms"] or {})):
        try:
            load_algorithm(resolve_algorithm_config(config, name))
        except TilewrightError:
            continue
