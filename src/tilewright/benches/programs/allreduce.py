"""All-reduce over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.exchange import Algorithm, Buffer, Exchange, NumBytes, run_exchange
from tilewright.host import RuntimeContext
from tilewright.runtime.tensor import Tensor

__all__ = ("ALLREDUCE",)


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    del outputs
    dist.all_reduce(inputs[0])
    return inputs


def _run(
    torch: RuntimeContext,
    bytes: NumBytes = 65_536,
    algorithm: Algorithm = "auto",
    buffer: Buffer = "tcm",
) -> BenchOutcome:
    exchange = Exchange(
        "allreduce",
        _call,
        lambda values, _: values.sum(0),
        lambda ranks: 2 * (ranks - 1) / ranks,
    )
    return run_exchange(torch, exchange, bytes, algorithm, buffer)


ALLREDUCE = BenchProgram("allreduce", "sum of a tensor over SIPs, everywhere", _run)
