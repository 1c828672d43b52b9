"""Small machines, and worlds of workers on them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilewright.host import RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine

Array = np.ndarray[Any, Any]


@cache
def machine_of_sips(num_sips: int, fabric: tuple[str, ...] = ()) -> Machine:
    """A cube of 4 PEs in each."""
    overrides = [f"sip.count={num_sips}", "sip.columns=1", "sip.rows=1", *fabric]
    return build_machine(parse_machine("ahbm-small", overrides))


@cache
def machine_of_pes() -> Machine:
    """16 PEs in one SIP."""
    return build_machine(parse_machine("ahbm-small"))


def places_of_pes(num_ranks: int) -> list[tuple[int, int, int]]:
    """A PE for each rank, neighbours far from each other."""
    return [(0, rank % 4, rank // 4) for rank in range(num_ranks)]


def run_ranks(
    num_ranks: int,
    program: Callable[[int, Any, Any], Any],
    *,
    rank_is_pe: bool = False,
    sanitize: bool = False,
    data: bool = True,
    skews_ps: list[int] | None = None,
    fabric: tuple[str, ...] = (),
    **options: Any,
) -> RuntimeContext:
    """Run ``program(rank, torch, dist)`` on every rank; what is over when this returns.

    ``fabric`` says what differs from a switch between SIPs.
    """
    machine = machine_of_pes() if rank_is_pe else machine_of_sips(num_ranks, fabric)
    torch = RuntimeContext(machine, sanitize=sanitize, data=data)

    def worker(rank: int) -> None:
        if not rank_is_pe:
            torch.ahbm.set_device(rank)
        join_world(torch, num_ranks, rank_is_pe=rank_is_pe, **options)
        if skews_ps is not None:
            torch.driver.hub.sleep(skews_ps[rank])
        program(rank, torch, torch.distributed)

    torch.multiprocessing.spawn(worker, nprocs=num_ranks)
    return torch


def join_world(torch: RuntimeContext, num_ranks: int, *, rank_is_pe: bool, **options: Any) -> None:
    """By each rank; one that is in a world leaves it first."""
    dist = torch.distributed
    if dist.is_initialized():
        dist.destroy_process_group()
    if rank_is_pe:
        options["rank_to_pe"] = places_of_pes(num_ranks)
    dist.init_process_group("ahbm", **options)
