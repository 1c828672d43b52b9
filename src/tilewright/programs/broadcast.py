"""Broadcast from the first SIP of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.collectives.operation import Operation
from tilewright.programs.exchange import Exchange, exchange_program
from tilewright.runtime.tensor.tensor import Tensor


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    del outputs
    dist.broadcast(inputs[0], src=0)
    return inputs


BROADCAST = exchange_program(
    "broadcast",
    "a tensor of the first SIP, everywhere",
    Exchange(
        Operation.BROADCAST,
        _call,
        lambda values, _: values[0],
        lambda ranks: min(ranks - 1, 1),
    ),
)
