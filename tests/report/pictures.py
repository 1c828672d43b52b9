"""All plots of small records and a page with plots, the text of one after the other."""

from collections.abc import Iterator

from tests.report.decode_page.pages import typical_page
from tests.report.probe_records import record_of, row_of
from tests.report.quality.records import compare_record, quality_row
from tilewright.records import RunParts, installed_versions
from tilewright.records.bench import CollectiveRow, CollectivesBenchRecord
from tilewright.records.run.record import RunSweepRecord, SweepPoint
from tilewright.report.collectives_plot import draw_collectives
from tilewright.report.decode_page.page import decode_page_text
from tilewright.report.decode_page.plot import draw_quality_over_latency, draw_stages
from tilewright.report.probe_plot import draw_probe
from tilewright.report.quality.plot import draw_quality
from tilewright.report.run.sweep import draw_sweep

__all__ = ("all_plots", "collectives_record", "sweep_record")


def all_plots() -> Iterator[str]:
    rows = [
        quality_row(flow, budget, mass=budget / 20, bytes=60 * budget, is_pareto=flow == "quest")
        for flow in ("quest", "random", "$x$ _y")
        for budget in (4, 8, 16)
    ]
    page = typical_page()
    yield draw_quality(compare_record(*rows))
    yield draw_probe(record_of(*(row_of("a", size, 4 * size, size) for size in (256, 4096))))
    yield draw_sweep(sweep_record(1_000_000, 4_000_000))
    yield draw_collectives(collectives_record(2_000_000, 3_000_000))
    yield draw_quality_over_latency(page)
    yield draw_stages(page)
    yield decode_page_text(page)


def sweep_record(*latencies_ps: int) -> RunSweepRecord:
    """A point for each latency, half of which is memory reads and a quarter the bound."""
    points = [
        SweepPoint(
            parameters={"n": index}, ok=True, latency_ps=latency_ps, bound_ps=latency_ps // 4,
            ratio=4.0, bottleneck="", values_ok=None,
            breakdown_ps=RunParts(
                memory_read=latency_ps // 2, other=latency_ps - latency_ps // 2
            ),
        )
        for index, latency_ps in enumerate(latencies_ps)
    ]  # fmt: skip
    return RunSweepRecord(
        ok=True, program="matmul", parameters={"m": 1}, machine="ahbm", machine_hash="0" * 64,
        seed=0, versions=installed_versions(engine="reference"), points=tuple(points),
    )  # fmt: skip


def collectives_record(*latencies_ps: int) -> CollectivesBenchRecord:
    """A row for each latency, half of which is the bound."""
    rows = [
        CollectiveRow(
            series="bus", operation="allreduce", algorithm="ring", topology="ring of 4", ranks=4,
            bytes=4096, buffer="tcm", latency_ps=latency_ps, alpha_beta_ps=latency_ps + 1,
            bound_ps=latency_ps // 2, ratio=2.0, algbw_gbs=1.0, busbw_gbs=1.5, bottleneck="a link",
            bottleneck_share=0.5,
        )
        for latency_ps in latencies_ps
    ]  # fmt: skip
    return CollectivesBenchRecord(
        versions=installed_versions(engine="reference"), alpha_beta_worst_error=None,
        whole_device_worst_ratio=None, bus_fraction_large=None, bus_spread=None,
        torus6_64k_ratio=None, event_growth=None, rows=tuple(rows), events=(),
    )  # fmt: skip
