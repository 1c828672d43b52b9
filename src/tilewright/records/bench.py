"""The records of benchmarks; wall-clock figures differ between runs."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tilewright.records.document import Document, Seconds, Sha256, Versions
from tilewright.records.phases import PhaseSpread, Timed


class EngineRatios(Document):
    """Packet hops per second as a multiple of SimPy at message level; None: no compiled core."""

    native_open_loop: PositiveFloat | None
    native_closed_loop: PositiveFloat | None
    native_finite_buffers: PositiveFloat | None
    reference_open_loop: PositiveFloat | None


class EngineWorkloadRow(Document):
    """One implementation on one workload."""

    workload: str
    implementation: str
    seconds: Seconds
    hops: PositiveInt
    hops_per_s: PositiveFloat
    events_per_hop: NonNegativeFloat | None  # None: the implementation does not count its events
    simulated_ps: PositiveInt  # when the last message arrived
    digest: Sha256  # of the results: equal digests prove equal results


class GrowthRow(Document):
    """One size of the growth series, at the same load per node."""

    nodes: PositiveInt
    hops: PositiveInt
    seconds: Seconds


class EngineBenchRecord(Document):
    """Engines beside their peers, in one run."""

    kind: Literal["engine-bench"] = "engine-bench"
    schema_version: Literal[1] = 1
    versions: Versions
    seed: NonNegativeInt
    identical: bool  # all digests of a workload are equal
    ratios: EngineRatios
    growth_64_to_1024: PositiveFloat | None
    growth: tuple[GrowthRow, ...]
    workloads: tuple[EngineWorkloadRow, ...]
    simpy_timeouts_per_s: PositiveFloat | None
    invariant_cost: float  # share of a run spent on its checks; noise may make it negative


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


class AttentionWorkload(Document):
    """What both sides computed: one layer, float32, equal threads."""

    rows: PositiveInt  # requests x KV heads
    context: PositiveInt  # tokens of a row
    page_size: PositiveInt
    head_dim: PositiveInt
    query_heads: PositiveInt
    pages: PositiveInt  # that a sparse row reads
    threads: PositiveInt


class SelectionRow(Document):
    """The cost of selecting at one length."""

    context: PositiveInt
    pages: PositiveInt
    seconds: Seconds


class AttentionBenchRecord(Document):
    """Quest on the reference executor beside dense attention in torch, in one run."""

    kind: Literal["attention-bench"] = "attention-bench"
    schema_version: Literal[1] = 1
    versions: Versions
    torch: str
    seed: NonNegativeInt
    workload: AttentionWorkload
    quest_128k_vs_dense_torch: PositiveFloat  # dense seconds / sparse seconds
    growth: PositiveFloat  # of a page's selection cost, from a quarter of the context to all of it
    sparse_seconds: Seconds
    sdpa_seconds: Seconds
    matmul_seconds: Seconds
    selection: tuple[SelectionRow, ...]
    dense_error: NonNegativeFloat  # of the executor's dense attention against torch, relative
    passed: bool


class CollectiveRow(Timed):
    """One collective; bytes are of a rank's tensor, times from its first program to its last."""

    series: str
    operation: str
    algorithm: str
    topology: str
    ranks: PositiveInt
    bytes: PositiveInt
    buffer: Literal["tcm", "sram", "hbm"]
    latency_ps: PositiveInt
    alpha_beta_ps: PositiveInt  # of blocks that are not cut, along the longest way of the plan
    bound_ps: NonNegativeInt  # what no algorithm can beat
    bound_latency_ps: NonNegativeInt | None = None  # part of it; None: latencies do not count
    ratio: PositiveFloat | None  # mean latency / bound; None: no bound
    algbw_gbs: PositiveFloat  # bytes / mean latency
    busbw_gbs: PositiveFloat  # times 2 (ranks - 1) / ranks
    bottleneck: str  # the link that was busy for longest
    bottleneck_share: NonNegativeFloat  # of the latency

    @property
    def rate_ps(self) -> int:
        """Part of the bound that is work over rates."""
        return self.bound_ps - (self.bound_latency_ps or 0)

    @property
    def least_ps(self) -> int:
        """Smallest latency over refresh phases: none of them may be below the bound."""
        return self.latency_ps if self.phases is None else self.phases.min_ps


class EventRow(Document):
    """What simulating the hierarchical all-reduce of PEs takes."""

    ranks: PositiveInt
    chunks: PositiveInt  # of a rank's tensor; each is of the same size
    events: PositiveInt


class CollectivesBenchRecord(Document):
    """How near collectives come to the links, and what the simulator pays for more ranks."""

    kind: Literal["collectives-bench"] = "collectives-bench"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    versions: Versions
    alpha_beta_worst_error: NonNegativeFloat | None  # None: the series was not asked for
    whole_device_worst_ratio: PositiveFloat | None  # latency of chunks / alpha-beta without cuts
    bus_fraction_large: PositiveFloat | None  # the least, of what leaves a SIP
    bus_spread: NonNegativeFloat | None  # greatest / least - 1
    torus6_64k_ratio: PositiveFloat | None  # to the bound of the links or the path, if longer
    event_growth: PositiveFloat | None  # of the events, over the growth of ranks x chunks
    rows: tuple[CollectiveRow, ...]
    events: tuple[EventRow, ...]


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


class AblationRow(Timed):
    """One change to the sparse step; slow-down and bytes are beside the first row's."""

    name: str
    batch: PositiveInt
    placement: Literal["head", "stripe", "cube", "sip"]
    latency_ps: PositiveInt
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
