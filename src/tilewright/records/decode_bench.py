"""The record of the decode benchmark: simulated efficiency, and what simulating costs."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tilewright.records.document import Document, Seconds, Sha256
from tilewright.records.phases import PhaseSpread
from tilewright.records.versions import Versions


class DecodeWorkload(Document):
    """The step that the figures are of; the costs of simulating and MLA have sizes of their own."""

    batch: PositiveInt
    kv_heads: PositiveInt
    query_heads: PositiveInt
    key_dim: PositiveInt
    context: PositiveInt
    page_size: PositiveInt
    budget: PositiveInt  # pages
    dtype: str
    machine: str
    machine_hash: Sha256
    selection: str


class SimulationCost(Document):
    """CPU seconds of simulating one step over those of NumPy's dense attention on one thread.

    Laying out memory before the step is not counted. Growth is of events, from the smaller context
    to the larger: (events at the larger / at the smaller) / (ratio of the contexts).
    """

    batch: PositiveInt
    context: PositiveInt
    sparse_vs_numpy: PositiveFloat
    dense_vs_numpy: PositiveFloat
    event_growth: PositiveFloat  # of a dense step
    sparse_event_growth: PositiveFloat
    numpy_s: Seconds
    sparse_s: Seconds
    dense_s: Seconds
    growth_contexts: tuple[PositiveInt, PositiveInt]
    dense_events: tuple[NonNegativeInt, NonNegativeInt]
    sparse_events: tuple[NonNegativeInt, NonNegativeInt]


class AblationRow(Document):
    """One change to the sparse step; slow-down and bytes are beside the first row's."""

    name: str
    batch: PositiveInt
    placement: Literal["head", "stripe", "cube", "sip"]
    latency_ps: PositiveInt
    phases: PhaseSpread | None = None  # latency over refresh phases, of which its own is the first
    bytes: NonNegativeInt
    launches: PositiveInt
    slowdown: PositiveFloat  # of the means


class DecodeBenchRecord(Document):
    """``passed``: all that is asked of the figures holds; ``failures`` says what does not."""

    kind: Literal["decode-bench"] = "decode-bench"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    versions: Versions
    seed: NonNegativeInt
    workload: DecodeWorkload
    bytes_ratio_worst: NonNegativeFloat  # of a stage's bytes to the least it must move
    speedup_128k: PositiveFloat  # dense latency / sparse latency
    fraction_of_bytes_bound: PositiveFloat  # of the speed-up that bytes alone would give
    dense_hbm_fraction: PositiveFloat  # of the refresh-limited peak
    mla_roofline_fraction: PositiveFloat  # work over peak rates / latency of dense MLA
    dense_latency_ps: PositiveInt
    sparse_latency_ps: PositiveInt
    dense_phases: PhaseSpread | None = None  # latency over refresh phases
    sparse_phases: PhaseSpread | None = None
    sim_cost: SimulationCost | None  # None: not asked for
    compile_s_worst: Seconds
    compile_flow_worst: str
    cached_s_worst: Seconds
    flows_compiled: NonNegativeInt
    ablation: tuple[AblationRow, ...]
    passed: bool
    failures: tuple[str, ...]
