"""The record of the language benchmark: wall-clock figures, so they differ between runs."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tilewright.records.document import Document, Seconds
from tilewright.records.versions import Versions


class TritonRatios(Document):
    """Wall time of Triton's interpreter / ours, launch included."""

    vector_add: PositiveFloat
    softmax: PositiveFloat
    matmul: PositiveFloat
    layer_norm: PositiveFloat
    flash_attention: PositiveFloat
    geomean: PositiveFloat


class LanguageRow(Document):
    """One kernel on both sides: medians of wall times, and what the simulated machine needed."""

    kernel: str
    seconds: Seconds
    interpreter_seconds: Seconds
    latency_ps: PositiveInt
    commands: PositiveInt
    gathers: NonNegativeInt
    error: NonNegativeFloat  # greatest difference of the results, relative to the row's norm


class GemmFigures(Document):
    """A product of 4096 x 4096 x 4096 in f16 over the 128 PEs of one SIP, as one composite a PE."""

    peak_fraction: PositiveFloat  # simulated, from the first command to the last store
    timing_vs_numpy: PositiveFloat  # wall time without values / NumPy's f32 product on one thread
    values_vs_numpy: PositiveFloat  # the same with values
    event_growth: PositiveFloat  # of the events, from M to twice M, over the growth of M
    latency_ps: PositiveInt
    numpy_seconds: Seconds


class LanguageBenchRecord(Document):
    """The kernel language beside Triton's interpreter, and how well simulated kernels do."""

    kind: Literal["language-bench"] = "language-bench"
    schema_version: Literal[1] = 1
    versions: Versions
    triton: str
    seed: NonNegativeInt
    triton_interpreter: TritonRatios
    kernels: tuple[LanguageRow, ...]
    gemm_4096: GemmFigures
    decode_32k_hbm_fraction: PositiveFloat  # of the refresh-limited peak
    decode_latency_ps: PositiveInt
    steps_per_s: PositiveFloat
    values_ok: bool
