"""What a simulated latency of attention is of: the machine, and the decode step on it."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from tilewright.records.document import Document, Sha256

LatencySelection = Literal["recorded", "uniform", "every page"]
"""Which pages the rows of a simulated step read: those of the measured run, drawn ones, or all."""


class MachineFigures(Document):
    """A machine that steps were simulated on."""

    name: str  # as rows call it
    source: str  # a preset, or a file
    overrides: tuple[str, ...]
    machine_hash: Sha256
    refresh_ps: NonNegativeInt
    """Of one refresh of its memory; 0: none. A step has one more or less by when it begins."""


class StepFigures(Document):
    """One layer's attention of one decode step: a new token for each request of a batch.

    From the host's submission of its launches to the host's knowing that they have ended. Tensors
    carry no values, so it is time alone; weights, projections and other layers are not in it.
    """

    layers: Literal[1] = 1
    carries_data: Literal[False] = False
    placement: Literal["head", "stripe", "cube", "sip"]
    batch: PositiveInt  # requests
    kv_heads: PositiveInt  # of a request: a row each
    query_heads: PositiveInt  # that share a KV head
    key_dim: PositiveInt
    value_dim: PositiveInt
    page_size: PositiveInt
    dtype: str  # of queries, keys, values and summaries on the machine
