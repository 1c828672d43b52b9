"""Reduce-scatter over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.collectives.operation import Operation
from tilewright.programs.exchange import Exchange, exchange_program
from tilewright.runtime.tensor.tensor import Tensor


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    dist.reduce_scatter(outputs[0], inputs)
    return outputs


REDUCE_SCATTER = exchange_program(
    "reduce_scatter",
    "sum of a tensor over SIPs, a part on each",
    Exchange(
        Operation.REDUCE_SCATTER,
        _call,
        lambda values, rank: values.sum(0).reshape(len(values), -1)[rank],
        lambda ranks: (ranks - 1) / ranks,
        lambda ranks, elements: [elements // ranks],
        is_cut=True,
    ),
)
