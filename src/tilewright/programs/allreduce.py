"""All-reduce over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.collectives.operation import Operation
from tilewright.programs.exchange import Exchange, exchange_program
from tilewright.runtime.tensor.tensor import Tensor


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    del outputs
    dist.all_reduce(inputs[0])
    return inputs


ALLREDUCE = exchange_program(
    "allreduce",
    "sum of a tensor over SIPs, everywhere",
    Exchange(
        Operation.ALL_REDUCE,
        _call,
        lambda values, _: values.sum(0),
        lambda ranks: 2 * (ranks - 1) / ranks,
    ),
)
