"""All-gather over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.collectives.operation import Operation
from tilewright.programs.exchange import Exchange, exchange_program
from tilewright.runtime.tensor.tensor import Tensor


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    dist.all_gather(outputs, inputs[0])
    return outputs


ALLGATHER = exchange_program(
    "allgather",
    "parts of all SIPs, everywhere",
    Exchange(
        Operation.ALL_GATHER,
        _call,
        lambda values, _: values.reshape(-1),
        lambda ranks: (ranks - 1) / ranks,
        lambda ranks, elements: [elements // ranks] * ranks,
        is_split=True,
    ),
)
