"""All-to-all over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.exchange import Algorithm, Buffer, Exchange, NumBytes, run_exchange
from tilewright.host import RuntimeContext
from tilewright.runtime.tensor import Tensor

__all__ = ("ALLTOALL",)


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    dist.all_to_all(outputs, inputs)
    return outputs


def _run(
    torch: RuntimeContext,
    bytes: NumBytes = 65_536,
    algorithm: Algorithm = "direct",
    buffer: Buffer = "tcm",
) -> BenchOutcome:
    exchange = Exchange(
        "alltoall",
        _call,
        lambda values, rank: values.reshape(len(values), len(values), -1)[:, rank].reshape(-1),
        lambda ranks: (ranks - 1) / ranks,
        lambda ranks, elements: [elements // ranks] * ranks,
        is_cut=True,
    )
    return run_exchange(torch, exchange, bytes, algorithm, buffer)


ALLTOALL = BenchProgram("alltoall", "every SIP has a part for every other", _run)
