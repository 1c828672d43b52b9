"""Small records of comparisons, with machines and without."""

from tilewright.records import installed_versions
from tilewright.records.attention.compare import (
    AttentionCompareRecord,
    CompareSizes,
    LatencyFigures,
    QualityRow,
    SourceFigures,
)
from tilewright.records.attention.decode import MachineOfSteps, StepFigures

__all__ = ("compare_record", "quality_row")

NO_HASH = "0" * 64


def quality_row(flow: str, budget: int, **changes: object) -> QualityRow:
    row = QualityRow(
        flow=flow, graph_hash=NO_HASH, source="synthetic", context=64, budget=budget, pages=8,
        samples=8, mass=0.5, mass_ci=(0.4, 0.6), worst_head_mass=0.25, output_error=0.5,
        output_error_ci=None, oracle_ratio=0.75, oracle_ratio_ci=None, stability=None,
        stability_ci=None, bytes=256, dense_bytes=1024, kl=None, kl_ci=None, nll=None, nll_ci=None,
        dense_nll=None, perplexity_difference=None, perplexity_difference_ci=None,
        needle_hits=None, needle_cases=None, needle_ci=None, dense_needle_hits=None,
        machine=None, latency_ps=None, dense_latency_ps=None, latency_selection=None,
        latency_missing=None, dense_latency_missing=None, is_pareto=False,
    )  # fmt: skip
    return QualityRow.model_validate({**row.model_dump(), **changes})


def compare_record(
    *rows: QualityRow, latencies_kept: int = 0, batch: int = 1
) -> AttentionCompareRecord:
    machines = tuple(dict.fromkeys(row.machine for row in rows if row.machine is not None))
    step = StepFigures(
        placement="head", batch=batch, kv_heads=2, query_heads=4, key_dim=64, value_dim=64,
        page_size=8, dtype="float16",
    )  # fmt: skip
    figures = LatencyFigures(
        machines=tuple(
            MachineOfSteps(
                name=name, source=name, overrides=(), machine_hash=NO_HASH, refresh_ps=530_000
            )
            for name in machines
        ),
        step=step,
        tokens=65,
    )
    return AttentionCompareRecord(
        versions=installed_versions(engine="none"),
        source=SourceFigures(
            name="synthetic", model=None, model_hash=None, text=None, text_hash=None
        ),
        sizes=CompareSizes(
            context=64, page_size=8, cases=1, steps=8, reserved_first=1, reserved_last=1,
            state_advance="vortex", dense_layers=0, threads=1,
        ),
        seed=0,
        latency=figures if machines else None,
        rows=rows,
        differences=(),
        trials_kept=0,
        latencies_kept=latencies_kept,
        state=None,
        compare_s=1.0,
    )  # fmt: skip
