"""`verify_flow_compilable`: a flow at many sizes, and if asked its numbers."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.flow.loader import build_vflow
from tilewright.attention.graph import DType, FlowKind, Geometry
from tilewright.attention.passes import optimize_graph
from tilewright.attention.utils import resolve_dtype
from tilewright.attention.verify.numeric import NumericCheck
from tilewright.errors import FlowError, SpecError, TilewrightError


@dataclass(frozen=True, slots=True)
class Config:
    """One point: sizes of a batch, a model and its pages."""

    B: int
    G: int
    D: int
    num_kv_heads: int
    block_size: int
    page_size: int
    num_pages_per_workload: int = 1
    latent_dims: tuple[int, int] | None = None  # kv_lora_rank, qk_rope_head_dim under MLA

    @property
    def num_blocks_per_page(self) -> int:
        return self.page_size // self.block_size

    @property
    def workload_chunk_size(self) -> int:
        return self.num_pages_per_workload * self.num_blocks_per_page

    @property
    def num_qo_heads(self) -> int:
        return self.G * self.num_kv_heads

    def label(self) -> str:
        return (
            f"B={self.B} G={self.G} D={self.D} kv_heads={self.num_kv_heads}"
            f" block={self.block_size} page={self.page_size} ppw={self.num_pages_per_workload}"
        )

    def geometry(self, kind: FlowKind, dtypes: tuple[DType, DType, DType]) -> Geometry:
        """Return what the flow is traced for; types are of keys and values, queries, and fields."""
        latent_dims = self.latent_dims if kind is FlowKind.MLA else None
        value_dim, rope_dim = latent_dims or (self.D, 0)
        return Geometry(
            kind=kind,
            page_size=self.block_size,
            query_heads=self.G,
            key_dim=value_dim + rope_dim,
            value_dim=value_dim,
            **dict(zip(("kv_dtype", "query_dtype", "field_dtype"), dtypes, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A point that did not hold: where it stopped (cache, indexer, passes, numeric) and why."""

    cfg: Config
    phase: str
    traceback: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """All points of one verification."""

    passed: tuple[Config, ...] = ()
    failed: tuple[Failure, ...] = ()
    skipped: tuple[Config, ...] = ()
    numeric: bool = False
    largest_error: float = 0.0  # of numeric points, relative to the row norm

    @property
    def total(self) -> int:
        return len(self.passed) + len(self.failed) + len(self.skipped)

    @property
    def ok(self) -> bool:
        """Something was tried and nothing failed."""
        return not self.failed and bool(self.passed)

    def failures_by_phase(self) -> dict[str, int]:
        return dict(Counter(item.phase for item in self.failed))

    def summary(self, max_failures: int = 10) -> str:
        """A few lines for people: counts, then the first failures."""
        lines = [
            f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
        ]
        if self.numeric:
            lines.append(f"largest relative error {self.largest_error:.2e}")
        for item in self.failed[:max_failures]:
            last = item.traceback.strip().splitlines()[-1]
            lines.append(f"{item.phase}: {item.cfg.label()}: {last}")
        hidden = len(self.failed) - max_failures
        if hidden > 0:
            lines.append(f"... and {hidden} more")
        return "\n".join(lines)


DEFAULT_G_VALUES = (1, 2, 4, 8, 16)
DEFAULT_D_VALUES = (32, 64, 128)
DEFAULT_BLOCK_SIZES = (4, 8, 16, 32, 64, 128)
DEFAULT_PAGE_BLOCK_RATIOS = (1, 2, 4, 8, 16)
DEFAULT_PAGES_PER_WORKLOAD = (1, 2)
DEFAULT_MLA_DIMS = (512, 64)


def verify_flow_compilable(  # the call that users know
    flow: FlowBase | str,
    *,
    B: int = 2,  # noqa: N803
    num_kv_heads: int = 4,
    G_values: Sequence[int] = DEFAULT_G_VALUES,  # noqa: N803
    D_values: Sequence[int] = DEFAULT_D_VALUES,  # noqa: N803
    block_sizes: Sequence[int] = DEFAULT_BLOCK_SIZES,
    page_block_ratios: Sequence[int] = DEFAULT_PAGE_BLOCK_RATIOS,
    pages_per_workload_values: Sequence[int] = DEFAULT_PAGES_PER_WORKLOAD,
    max_page_size: int = 256,
    max_num_pages_per_request: int = 512,
    max_new_tokens_per_batch: int = 4096,
    kv_cache_dtype: object = DType.BFLOAT16,
    q_data_type: object = DType.BFLOAT16,
    intermediate_dtype: object = DType.BFLOAT16,
    device: object = "cuda:0",
    cache_dir: object = None,
    verify_indexer: bool = True,
    verify_cache: bool = True,
    verbose: bool = False,
    vortex_attention_backend: str = "flashinfer",
    vortex_impl_backend: str = "triton",
    vortex_use_tensor_core: bool = False,
    mla_dims: tuple[int, int] | None = None,
    numeric: bool = False,
    progress: Callable[[str], None] | None = None,
) -> VerifyReport:
    """Trace, verify and optimize a flow at every combination of sizes.

    With ``numeric`` each point also runs on random data against the dense definition. Where
    Vortex compiles kernels for a device, tracing decides here: ``device``, ``cache_dir``, the
    backend names and the limits of buffers make no difference, and both sides are always checked.
    ``verbose`` with ``progress`` reports each point.
    """
    del max_num_pages_per_request, max_new_tokens_per_batch, device, cache_dir
    del vortex_attention_backend, vortex_impl_backend, vortex_use_tensor_core
    if not (verify_indexer or verify_cache):
        fix = "leave one of them on"
        raise SpecError("verify_flow_compilable", "no side to verify", "one or both", fix)
    made = build_vflow(flow) if isinstance(flow, str) else flow
    dtypes = tuple(map(resolve_dtype, (kv_cache_dtype, q_data_type, intermediate_dtype)))
    sizes = product(G_values, D_values, block_sizes, page_block_ratios, pages_per_workload_values)
    latent = (mla_dims or DEFAULT_MLA_DIMS) if made.kind is FlowKind.MLA else None
    points = (
        Config(B, G, D, num_kv_heads, block, block * ratio, pages, latent)
        for G, D, block, ratio, pages in sizes
    )
    find = partial(_examine, made, (dtypes[0], dtypes[1], dtypes[2]), numeric=numeric)
    return _report(points, find, max_page_size, progress if verbose else None, numeric=numeric)


def _report(
    points: Iterable[Config],
    examine: Callable[[Config], tuple[str, str, float]],
    max_page_size: int,
    tell: Callable[[str], None] | None,
    *,
    numeric: bool,
) -> VerifyReport:
    """Examine all points; those that differ only in paging have one graph, examined once."""
    known: dict[tuple[object, ...], tuple[str, str, float]] = {}
    passed: list[Config] = []
    failed: list[Failure] = []
    skipped: list[Config] = []
    for point in points:
        if point.page_size > max_page_size:
            skipped.append(point)
            continue
        key = (point.G, point.latent_dims or point.D, point.block_size)
        if key not in known:
            known[key] = examine(point)
        phase, text, _ = known[key]
        if phase:
            failed.append(Failure(point, phase, text))
        else:
            passed.append(point)
        if tell is not None:
            tell(f"{'failed' if phase else 'passed'}: {point.label()}")
    largest = max((error for _, _, error in known.values()), default=0.0)
    return VerifyReport(tuple(passed), tuple(failed), tuple(skipped), numeric, largest)


def _examine(
    flow: FlowBase, dtypes: tuple[DType, DType, DType], point: Config, *, numeric: bool
) -> tuple[str, str, float]:
    """Return the phase that failed (empty: none), its traceback, the numeric error."""
    phase = "trace"
    try:
        graph = trace_flow(flow, point.geometry(flow.kind, dtypes))
        phase = "passes"
        optimized = optimize_graph(graph)
        phase = "numeric"
        heads = 1 if flow.kind is FlowKind.MLA else point.num_kv_heads
        error = NumericCheck(graph, optimized, heads).run() if numeric else 0.0
    except TilewrightError as found:
        sides = {"forward_cache": "cache", "create_cache": "cache", "forward_indexer": "indexer"}
        side = sides.get(found.method) if isinstance(found, FlowError) else None
        return side or phase, "".join(traceback.format_exception(found)), 0.0
    return "", "", error
