"""Broadcast from the first SIP of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.exchange import Algorithm, Buffer, Exchange, NumBytes, run_exchange
from tilewright.host import RuntimeContext
from tilewright.runtime.tensor import Tensor

__all__ = ("BROADCAST",)


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    del outputs
    dist.broadcast(inputs[0], src=0)
    return inputs


def _run(
    torch: RuntimeContext,
    bytes: NumBytes = 65_536,
    algorithm: Algorithm = "auto",
    buffer: Buffer = "tcm",
) -> BenchOutcome:
    exchange = Exchange(
        "broadcast",
        _call,
        lambda values, _: values[0],
        lambda ranks: min(ranks - 1, 1),
    )
    return run_exchange(torch, exchange, bytes, algorithm, buffer)


BROADCAST = BenchProgram("broadcast", "a tensor of the first SIP, everywhere", _run)
