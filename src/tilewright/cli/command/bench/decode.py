"""``tilewright bench decode``: a decode step's use of a machine, and the cost of simulating it."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.bench.decode import DecodeBenchSpec, run_decode_bench
from tilewright.cli.option import machine_option
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import PhasesOption, announced_engine, machine_of
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.records.bench import DecodeBenchRecord
from tilewright.report.format import ends_text, latency_text, width_text
from tilewright.units import format_bytes, format_ps


def decode(
    machine: Annotated[str, machine_option("A machine file or preset.")] = DEFAULT_PRESET,
    batch: Annotated[int, typer.Option(min=1, help="Requests, of 8 rows each.")] = 32,
    context: Annotated[int, typer.Option(min=1024, help="Tokens of a request.")] = 131_072,
    budget: Annotated[int, typer.Option(min=2, help="Pages that a row reads.")] = 64,
    ablation_batch: Annotated[int, typer.Option(min=1, help="Requests of the ablations.")] = 4,
    cost: Annotated[
        bool, typer.Option("--cost/--no-cost", help="Compare simulating with NumPy's attention.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of the selection.")] = 1,
    phases: PhasesOption = None,
) -> Outcome:
    """Hold Quest against dense attention on a machine.

    Without values; and what changes to it do. One layer's attention of one decode step: 256 rows, a
    PE each. Takes some minutes, most of them for the dense step. Exit status 1 if a figure is not
    what is asked of it; the record names it.
    """
    kind = announced_engine()
    spec = DecodeBenchSpec(
        machine=machine_of(machine),
        batch=batch,
        context=context,
        budget=budget,
        ablation_batch=ablation_batch,
        has_cost=cost,
        seed=seed,
        engine=kind,
        phases=phases,
    )
    record = run_decode_bench(spec, progress=note)
    return Outcome(record, _view(record), passed=record.passed)


def _view(record: DecodeBenchRecord) -> RenderableType:
    work, cost = record.workload, record.sim_cost
    title = f"{work.batch * work.kv_heads} rows of {work.context:,} tokens, {work.budget} pages"
    figures = Table(title=f"{title}, on {work.machine}", title_justify="left", show_header=False)
    rows = [
        ("dense", latency_text(record.dense_latency_ps, record.dense_phases)),
        ("sparse", latency_text(record.sparse_latency_ps, record.sparse_phases)),
        ("speed-up", f"{record.speedup_128k:.2f}"),
        ("of the speed-up by bytes", f"{100 * record.fraction_of_bytes_bound:.0f} %"),
        ("dense, of the HBM's peak", f"{100 * record.dense_hbm_fraction:.0f} %"),
        ("dense MLA, of its roofline", f"{100 * record.mla_roofline_fraction:.0f} %"),
        ("bytes of a stage, of the least", f"{record.bytes_ratio_worst:.3f} at worst"),
        ("compiling", f"{record.compile_s_worst:.2f} s at worst ({record.compile_flow_worst})"),
        ("from the cache", f"{record.cached_s_worst:.4f} s at worst"),
    ]
    if cost is not None:
        rows += [
            ("simulating sparse, of NumPy's dense", f"{cost.sparse_vs_numpy:.1f}"),
            ("simulating dense, of NumPy's dense", f"{cost.dense_vs_numpy:.1f}"),
            ("growth of events", f"{cost.event_growth:.3f}"),
        ]
    for row in rows:
        figures.add_row(*row)
    changes = Table(title="One change at a time", title_justify="left")
    for heading in ("change", "latency", "over phases", "slow-down", "bytes", "launches"):
        changes.add_column(heading, justify="left" if heading == "change" else "right")
    for item in record.ablation:
        changes.add_row(
            item.name,
            f"{format_ps(item.figure_ps)} {width_text(item.phases)}",
            ends_text(item.phases),
            f"{item.slowdown:.2f}",
            format_bytes(item.bytes),
            str(item.launches),
        )
    verdict = "All figures are as asked." if record.passed else "\n".join(record.failures)
    return Group(figures, changes, Text(verdict))
