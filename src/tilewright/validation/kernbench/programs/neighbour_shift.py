"""Rings by hand: install_ipcq for 8 PEs, then kernels that send and receive by direction."""

from pathlib import Path

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

WORLD, ELEMENTS = 8, 16
RESULTS = {}


def shift_kernel(x_ptr, out_ptr, n_elem, tl):
    at = tl.program_id(0) * n_elem * 2
    tl.send(dir="E", src=tl.load(x_ptr + at, (n_elem,), "f16"))
    tl.store(out_ptr + at, tl.recv(dir="W", shape=(n_elem,), dtype="f16"))


def future_kernel(x_ptr, out_ptr, n_elem, tl):
    at = tl.program_id(0) * n_elem * 2
    east = tl.recv_async(dir="E", shape=(n_elem,), dtype="f16")
    west = tl.recv_async(dir="W", shape=(n_elem,), dtype="f16")
    own = tl.load(x_ptr + at, (n_elem,), "f16")
    tl.send("E", src=own)
    tl.send("W", src=own)
    tl.store(out_ptr + at, tl.wait(east) + tl.wait(west))


def run(torch):
    plan = torch.install_ipcq(
        algorithm="ring_tcm",
        ccl_yaml=str(Path(__file__).with_name("ccl.yaml")),
        rank_to_pe=[(0, 0, pe) for pe in range(WORLD)],
    )
    x = np.arange(WORLD * ELEMENTS, dtype=np.float16).reshape(WORLD, ELEMENTS)
    dp = DPPolicy(pe="row_wise", num_cubes=1)
    a = torch.zeros(x.shape, dp=dp, name="x")
    shifted = torch.zeros(x.shape, dp=dp, name="shifted")
    both = torch.zeros(x.shape, dp=dp, name="both")
    a.copy_(torch.from_numpy(x))
    torch.launch("shift", shift_kernel, a, shifted, ELEMENTS)
    torch.launch("both", future_kernel, a, both, ELEMENTS)
    RESULTS.update(x=x, shifted=shifted.numpy(), both=both.numpy(), plan=plan)
