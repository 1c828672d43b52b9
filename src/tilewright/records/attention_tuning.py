"""What a search for the tiling of a flow's kernels has found on a machine."""

from typing import Literal

from pydantic import PositiveInt

from tilewright.records.document import Document, Sha256


class TilingTrial(Document):
    """One tiling, and what a row took under it."""

    tiling: dict[str, PositiveInt]
    latency_ps: PositiveInt


class TuningRecord(Document):
    """The first trial is the generator's own choice. ``key``: a hash of what this depends on."""

    kind: Literal["attention_tuning"] = "attention_tuning"
    schema_version: Literal[1] = 1
    key: Sha256
    best: TilingTrial
    trials: tuple[TilingTrial, ...]
