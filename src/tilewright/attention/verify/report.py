"""What verification tried, and how it went."""

from collections import Counter
from dataclasses import dataclass, field

from tilewright.attention.graph import DType, FlowKind, Geometry


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
        kv, query, field_dtype = dtypes
        if kind is FlowKind.GQA:
            return Geometry.gqa(
                page_size=self.block_size,
                head_dim=self.D,
                query_heads=self.G,
                kv_dtype=kv,
                query_dtype=query,
                field_dtype=field_dtype,
            )
        rank, rope = self.latent_dims or (self.D, 0)
        return Geometry.mla(
            page_size=self.block_size,
            kv_lora_rank=rank,
            qk_rope_head_dim=rope,
            query_heads=self.G,
            kv_dtype=kv,
            query_dtype=query,
            field_dtype=field_dtype,
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
    largest_error: float = field(default=0.0)  # of numeric points, relative to the row norm

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
