"""All-to-all over the SIPs of a machine."""

from collections.abc import Sequence
from typing import Any

from tilewright.collectives.operation import Operation
from tilewright.programs.exchange import Exchange, exchange_program
from tilewright.runtime.tensor.tensor import Tensor


def _call(dist: Any, inputs: list[Tensor], outputs: list[Tensor]) -> Sequence[Tensor]:
    dist.all_to_all(outputs, inputs)
    return outputs


ALLTOALL = exchange_program(
    "alltoall",
    "every SIP has a part for every other",
    Exchange(
        Operation.ALL_TO_ALL,
        _call,
        lambda values, rank: values.reshape(len(values), len(values), -1)[:, rank].reshape(-1),
        lambda ranks: (ranks - 1) / ranks,
        lambda ranks, elements: [elements // ranks] * ranks,
        is_cut=True,
    ),
)
