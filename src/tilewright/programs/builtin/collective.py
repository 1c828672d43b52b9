"""Collectives over the SIPs of a machine, which are the ranks; values are exact in f32."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from tilewright.collectives.algorithm import AUTO_ALGORITHM
from tilewright.collectives.algorithms import find_algorithm
from tilewright.collectives.operation import Operation
from tilewright.device.least_time import fabric_ps
from tilewright.errors import BenchError
from tilewright.host import DPPolicy, PeCoord, RuntimeContext, Split
from tilewright.programs.bound import Path, Work, bound_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.inputs import Array, check_sizes, small_integers
from tilewright.programs.parameter import ProgramFit
from tilewright.runtime.tensor.tensor import Tensor
from tilewright.units import PS_PER_US

NumBytes = Annotated[int, "of the whole buffer at a rank, in f32"]
Algorithm = Annotated[str, "of the collective; auto takes the least prediction"]
Buffer = Annotated[Literal["tcm", "sram", "hbm"], "memory of the rings"]

SPREAD = DPPolicy(cube=Split(0), pe=Split(0))
BY_COLUMNS = DPPolicy(cube=Split(1), pe=Split(1))
F32_BYTES = 4
COMBINING = frozenset((Operation.ALL_REDUCE, Operation.REDUCE_SCATTER))
IN_PLACE = frozenset((Operation.ALL_REDUCE, Operation.BROADCAST))  # one rank has what it needs

Tensors = list[Tensor]


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One collective: how a rank calls it, and what must be there after it.

    ``call`` gets the distributed namespace, tensors with the values of the rank, and as many
    tensors of a rank's part as ``num_outputs`` says. These hold the results, or else the others.
    ``expected`` is by rank, from the values of all.
    """

    operation: Operation
    call: Callable[[Any, Tensors, Tensors], object]
    expected: Callable[[Array, int], Array]
    sent_share: Callable[[int], float]  # of the buffer, that leaves a rank at least
    num_outputs: Callable[[int], int] = lambda _: 0
    is_cut: bool = False  # its values are a tensor for each rank
    is_split: bool = False  # a rank begins with its part of the buffer


def _collective_program(name: str, summary: str, exchange: _Exchange) -> BenchProgram:
    """Return the program of a collective; an algorithm that cannot carry it out is refused."""

    def run(
        torch: RuntimeContext,
        bytes: NumBytes = 65_536,
        algorithm: Algorithm = AUTO_ALGORITHM,
        buffer: Buffer = "tcm",
    ) -> BenchOutcome:
        if algorithm != AUTO_ALGORITHM:
            find_algorithm(algorithm, exchange.operation)
        ranks = torch.machine.grid.num_sips
        check_sizes(name, bytes=bytes)
        elements = bytes // F32_BYTES // ranks * ranks  # equal parts, one for each rank
        if not elements:
            found, expected = f"bytes={bytes}", f"an element for each of {ranks} ranks"
            raise BenchError(name, found, expected, "set it higher")
        used_bytes = elements * F32_BYTES
        left = f"{used_bytes} of {bytes} bytes: as many f32 for each rank"
        notes = () if used_bytes == bytes else (left,)
        return _run_exchange(torch, exchange, elements, algorithm, buffer, notes)

    return BenchProgram(
        name, summary, run, fit=ProgramFit(tiles=(("bytes",),), sizes=(("bytes",),))
    )


def _run_exchange(
    torch: RuntimeContext,
    exchange: _Exchange,
    elements: int,
    algorithm: str,
    buffer: str,
    notes: tuple[str, ...],
) -> BenchOutcome:
    """Run a collective of all SIPs; without values only the time counts."""
    ranks = torch.machine.grid.num_sips
    own = elements // ranks if exchange.is_split else elements
    values = small_integers(torch, (ranks, own))
    tensors = [_tensors(torch, exchange, rank, values[rank], elements) for rank in range(ranks)]
    errors: list[float] = []
    num_before = len(torch.reports)

    def worker(rank: int) -> None:
        torch.distributed.init_process_group(algorithm=algorithm, buffer_kind=buffer)
        inputs, outputs = tensors[rank]
        exchange.call(torch.distributed, inputs, outputs)
        if torch.carries_data:
            found = [each.numpy(timed=False).reshape(-1) for each in outputs or inputs]
            wrong = np.abs(np.concatenate(found) - exchange.expected(values, rank))
            errors.append(float(np.max(wrong, initial=0.0)))

    torch.multiprocessing.spawn(worker, nprocs=ranks)
    launches = torch.reports[num_before:]
    path = Path(
        pes=tuple(pe for launch in launches for pe in launch.pes),
        moves=ranks > 1 or exchange.operation not in IN_PLACE,
        computes=exchange.operation in COMBINING and ranks > 1,
        opens=buffer != "hbm",  # messages are written to slices before anybody reads them
        all_store=exchange.operation is not Operation.BROADCAST,
        messages=_farthest([inputs[0] for inputs, _ in tensors]),
    )
    machine, num_bytes = torch.machine, elements * F32_BYTES
    sent_bytes, fabric = exchange.sent_share(ranks) * num_bytes, machine.spec.fabric
    sent_ps = int(sent_bytes * PS_PER_US / (fabric.links * fabric.bytes_per_us))
    work = Work(num_pes=machine.grid.num_pes, read_bytes=num_bytes if path.moves else 0)
    return BenchOutcome(
        bound=bound_of(machine, work, path, {"SIP links": (sent_ps, fabric_ps(machine))}),
        launches=launches,
        max_error=max(errors) if torch.carries_data else None,
        tolerance=0.0,  # sums of small whole numbers are exact
        notes=notes,
    )


def _tensors(
    torch: RuntimeContext, exchange: _Exchange, rank: int, values: Array, elements: int
) -> tuple[Tensors, Tensors]:
    """Return what a rank gives, with its values, and room for what it gets."""
    ranks = torch.machine.grid.num_sips
    torch.ahbm.set_device(rank)
    parts = np.split(values, ranks) if exchange.is_cut else [values]
    inputs = [_empty(torch, exchange, part.size) for part in parts]
    num_outputs = exchange.num_outputs(ranks)
    outputs = [_empty(torch, exchange, elements // ranks) for _ in range(num_outputs)]
    torch.wait_all()  # at one time with and without values
    for tensor, part in zip(inputs, parts, strict=True):
        tensor.copy_(part.reshape(tensor.shape), timed=False)
    return inputs, outputs


def _empty(torch: RuntimeContext, exchange: _Exchange, size: int) -> Tensor:
    """Parts of an all-to-all may have different numbers of rows: they lie alike by columns."""
    if exchange.operation is Operation.ALL_TO_ALL:
        return torch.empty((1, size), "f32", dp=BY_COLUMNS)
    return torch.empty(size, "f32", dp=SPREAD)


def _farthest(tensors: Sequence[Tensor]) -> tuple[tuple[PeCoord, PeCoord], ...]:
    """Pair the last PE of the first rank with that of each other one.

    Tensors lie alike everywhere, so what a PE has depends on the PE at its place of every rank;
    the last one of a SIP is the farthest from the other SIPs.
    """
    last = [max(tensor.placement.homes) for tensor in tensors]
    return tuple((last[0], pe) for pe in last[1:])


def _all_reduce(dist: Any, inputs: Tensors, _outputs: Tensors) -> None:
    dist.all_reduce(inputs[0])


def _all_gather(dist: Any, inputs: Tensors, outputs: Tensors) -> None:
    dist.all_gather(outputs, inputs[0])


def _reduce_scatter(dist: Any, inputs: Tensors, outputs: Tensors) -> None:
    dist.reduce_scatter(outputs[0], inputs)


def _all_to_all(dist: Any, inputs: Tensors, outputs: Tensors) -> None:
    dist.all_to_all(outputs, inputs)


def _broadcast(dist: Any, inputs: Tensors, _outputs: Tensors) -> None:
    dist.broadcast(inputs[0], src=0)


def _others(ranks: int) -> float:
    """Return the share of a buffer that all ranks but one have."""
    return (ranks - 1) / ranks


PROGRAMS = (
    _collective_program(
        "allreduce",
        "sum of a tensor over SIPs, everywhere",
        _Exchange(
            Operation.ALL_REDUCE,
            _all_reduce,
            lambda values, _: values.sum(0),
            lambda ranks: 2 * (ranks - 1) / ranks,
        ),
    ),
    _collective_program(
        "allgather",
        "parts of all SIPs, everywhere",
        _Exchange(
            Operation.ALL_GATHER,
            _all_gather,
            lambda values, _: values.reshape(-1),
            _others,
            lambda ranks: ranks,
            is_split=True,
        ),
    ),
    _collective_program(
        "reduce_scatter",
        "sum of a tensor over SIPs, a part on each",
        _Exchange(
            Operation.REDUCE_SCATTER,
            _reduce_scatter,
            lambda values, rank: values.sum(0).reshape(len(values), -1)[rank],
            _others,
            lambda _: 1,
            is_cut=True,
        ),
    ),
    _collective_program(
        "alltoall",
        "every SIP has a part for every other",
        _Exchange(
            Operation.ALL_TO_ALL,
            _all_to_all,
            lambda values, rank: values.reshape(len(values), len(values), -1)[:, rank].reshape(-1),
            _others,
            lambda ranks: ranks,
            is_cut=True,
        ),
    ),
    _collective_program(
        "broadcast",
        "a tensor of the first SIP, everywhere",
        _Exchange(
            Operation.BROADCAST,
            _broadcast,
            lambda values, _: values[0],
            lambda ranks: min(ranks - 1, 1),
        ),
    ),
)
