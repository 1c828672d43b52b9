"""All-gather over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.exchange import Algorithm, Buffer, Exchange, NumBytes, run_exchange
from tilewright.host import RuntimeContext
from tilewright.runtime.tensor import Tensor

__all__ = ("ALLGATHER",)


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    dist.all_gather(outputs, inputs[0])
    return outputs


def _run(
    torch: RuntimeContext,
    bytes: NumBytes = 65_536,
    algorithm: Algorithm = "auto",
    buffer: Buffer = "tcm",
) -> BenchOutcome:
    exchange = Exchange(
        "allgather",
        _call,
        lambda values, _: values.reshape(-1),
        lambda ranks: (ranks - 1) / ranks,
        lambda ranks, elements: [elements // ranks] * ranks,
        is_split=True,
    )
    return run_exchange(torch, exchange, bytes, algorithm, buffer)


ALLGATHER = BenchProgram("allgather", "parts of all SIPs, everywhere", _run)
