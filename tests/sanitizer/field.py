"""Where mistakes are seeded: a small machine with small pages, and tensors dealt to four PEs."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilewright.errors import AddressError
from tilewright.host import DPPolicy, Interleave, RuntimeContext, Tensor
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.memory.sanitizer.finding import Finding

__all__ = ("BLOCK", "DEALT", "NUM_PES", "PAGE", "RING", "Mistake", "machine", "play", "tensor")

PAGE = 4096
BLOCK = 1024  # f32 of a page
NUM_PES = 4
DEALT = DPPolicy(pe=Interleave(PAGE), num_cubes=1)
RING = {place: {"E": (place + 1) % NUM_PES, "W": (place - 1) % NUM_PES} for place in range(NUM_PES)}

Mistake = Callable[[RuntimeContext, bool], None]
"""A host program with its kernels: with True it has a mistake, with False it is right."""


@cache
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small", [f"pe.mmu.page_bytes={PAGE}"]))


def tensor(
    torch: RuntimeContext, name: str, n: int, values: Any = None, dtype: str = "f32"
) -> Tensor:
    """Whole pages in turn; never written if there are no values."""
    made = torch.empty(n, dtype, dp=DEALT, name=name)
    if values is not None:
        array = np.broadcast_to(np.asarray(values), (n,))
        made.copy_(array.astype(np.int64 if dtype == "i64" else np.float32), timed=False)
    return made


@cache
def play(
    mistake: Mistake, wrong: bool, *, sanitize: bool = True, data: bool = True
) -> tuple[list[Finding], int]:
    """What is found and when the run ends, which an AddressError may do; asked twice, run once."""
    torch = RuntimeContext(machine(), sanitize=sanitize, data=data)
    try:
        mistake(torch, wrong)
    except AddressError:
        assert wrong
    return list(torch.findings) if sanitize else [], torch.now_ps
