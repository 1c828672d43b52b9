"""Reduce-scatter over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.benches.programs.contract import BenchOutcome, BenchProgram
from tilewright.benches.programs.exchange import Algorithm, Buffer, Exchange, NumBytes, run_exchange
from tilewright.host import RuntimeContext
from tilewright.runtime.tensor import Tensor

__all__ = ("REDUCE_SCATTER",)


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    dist.reduce_scatter(outputs[0], inputs)
    return outputs


def _run(
    torch: RuntimeContext,
    bytes: NumBytes = 65_536,
    algorithm: Algorithm = "auto",
    buffer: Buffer = "tcm",
) -> BenchOutcome:
    exchange = Exchange(
        "reduce_scatter",
        _call,
        lambda values, rank: values.sum(0).reshape(len(values), -1)[rank],
        lambda ranks: (ranks - 1) / ranks,
        lambda ranks, elements: [elements // ranks],
        is_cut=True,
    )
    return run_exchange(torch, exchange, bytes, algorithm, buffer)


REDUCE_SCATTER = BenchProgram("reduce_scatter", "sum of a tensor over SIPs, a part on each", _run)
