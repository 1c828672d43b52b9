"""``tilewright bench engine``, ``language`` and ``attention``: wall times beside those of peers."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.bench.attention import BenchSpec, run_attention_bench
from tilewright.bench.engine import run_engine_bench
from tilewright.bench.language.speed import LanguageBenchSpec, run_language_bench
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine
from tilewright.records import EngineBenchRecord, EngineWorkloadRow
from tilewright.records.bench import AttentionBenchRecord, LanguageBenchRecord
from tilewright.units import format_ps


def engine(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random loads.")] = 1,
    rounds: Annotated[
        int, typer.Option(min=1, help="Turns that each implementation gets; the best counts.")
    ] = 5,
) -> Outcome:
    """Time both event engines beside SimPy, and prove them equal.

    All have the same loads. Needs the extra `bench`. Figures are ratios of wall times in this run:
    absolute times say more about the machine than about the engine. Exit status 1 if any result
    differs.
    """
    announced_engine()
    record = run_engine_bench(progress=note, seed=seed, rounds=rounds)
    return Outcome(record, _engine_view(record), passed=record.identical)


def _engine_view(record: EngineBenchRecord) -> RenderableType:
    title = Text("Speed against SimPy at message level (times as fast)", style="italic")
    ratios = Table(show_header=False)
    for name, value in record.ratios:
        ratios.add_row(
            name.replace("_", " "), "no compiled core" if value is None else f"{value:.1f}"
        )
    verdict = "All results are equal." if record.identical else "Results DIFFER: see the digests."
    lines = [verdict, "ev/hop: events that were handled per hop."]
    if record.growth_64_to_1024 is not None:
        lines.append(
            f"A hop on 1024 nodes takes {record.growth_64_to_1024:.2f} times as long as on 64, "
            "at the same load per node."
        )
    lines.append(
        f"Conservation rules take {record.invariant_cost:.1%} of a run (worst engine, open loop)."
    )
    if record.simpy_timeouts_per_s is not None:
        lines.append(f"SimPy alone: {record.simpy_timeouts_per_s:,.0f} bare timeouts a second.")
    return Group(speed_table(record.workloads), title, ratios, Text("\n".join(lines)))


def speed_table(rows: Sequence[EngineWorkloadRow]) -> Table:
    """One row for each; the speed-up is against the first implementation of the same load."""
    table = Table(
        title="Packet hops per second of wall time",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for heading in ("load", "run by"):
        table.add_column(heading, no_wrap=True)
    for heading in ("simulated", "hops/s", "ev/hop", "speed-up", "digest"):
        table.add_column(heading, justify="right", no_wrap=True)
    first: dict[str, float] = {}
    for row in rows:
        is_new = row.workload not in first
        base = first.setdefault(row.workload, row.hops_per_s)
        table.add_row(
            row.workload if is_new else "",
            row.implementation,
            format_ps(row.simulated_ps),
            _short(row.hops_per_s),
            "-" if row.events_per_hop is None else f"{row.events_per_hop:.2f}",
            f"{row.hops_per_s / base:,.1f}x",
            row.digest[:6],
        )
    return table


def _short(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


def language(
    rounds: Annotated[
        int, typer.Option(min=1, help="Turns that each side gets; the median counts.")
    ] = 5,
    steps: Annotated[
        int, typer.Option(min=1, help="Load-compute-store steps of each of the 256 programs.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 1,
) -> Outcome:
    """Time five kernels here and in Triton's interpreter.

    And tell how well simulated kernels do. Needs the extra `bench`. Ratios are of wall times in
    this run, launch included, on one cube of `ahbm` with the detailed HBM. Exit status 1 if results
    differ.
    """
    announced_engine()
    spec = LanguageBenchSpec(rounds=rounds, steps=steps, seed=seed)
    record = run_language_bench(spec, progress=note)
    return Outcome(record, _language_view(record), passed=record.values_ok)


def _language_view(record: LanguageBenchRecord) -> RenderableType:
    table = Table(title="Wall time of a launch, beside Triton's interpreter")
    for column in ("kernel", "here ms", "Triton ms", "times as fast", "simulated us"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for row in record.kernels:
        table.add_row(
            row.kernel.replace("_", " "),
            f"{row.seconds * 1e3:.1f}",
            f"{row.interpreter_seconds * 1e3:.0f}",
            f"{row.interpreter_seconds / row.seconds:.1f}",
            f"{row.latency_ps / 1e6:.1f}",
        )
    gemm = record.gemm_4096
    lines = (
        f"Geometric mean: {record.triton_interpreter.geomean:.1f} times as fast.",
        f"A product of 4096 x 4096 x 4096 on 128 PEs: {gemm.peak_fraction:.1%} of the peak.",
        f"Simulating it takes {gemm.timing_vs_numpy:.1f} times NumPy's own time on one thread,",
        f"{gemm.values_vs_numpy:.1f} times with values.",
        f"Decode over 32K tokens: {record.decode_32k_hbm_fraction:.1%} of the HBM's real peak.",
        f"{record.steps_per_s:,.0f} load-compute-store steps a second.",
        "Values agree." if record.values_ok else "Values DIFFER.",
    )
    return Group(table, Text("\n".join(lines)))


def attention(
    context: Annotated[
        int, typer.Option(min=4096, help="Tokens of a row; the claim is about 131072.")
    ] = 131_072,
    requests: Annotated[int, typer.Option(min=1, help="Requests, of 8 rows each.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Threads of either side.")] = 1,
    rounds: Annotated[
        int, typer.Option(min=1, help="Turns that each side gets; the best counts.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of keys, values and queries.")] = 1,
) -> Outcome:
    """Time Quest's reference beside dense attention in torch.

    Quest at 64 pages, beside the faster of SDPA and matmul. One layer in float32, the same arrays
    for both. Needs the extra `bench` and about 5 GiB. Exit status 1 if Quest is less than 4 times
    as fast, if the cost of selecting a page grows by more than a fifth from a quarter of the
    context to all of it, or if dense results differ.
    """
    spec = BenchSpec(context=context, requests=requests, threads=threads, rounds=rounds, seed=seed)
    record = run_attention_bench(spec, progress=note)
    return Outcome(record, _attention_view(record), passed=record.passed)


def _attention_view(record: AttentionBenchRecord) -> RenderableType:
    work = record.workload
    table = Table(title=f"{work.rows} rows of {work.context} tokens, {work.threads} thread(s)")
    table.add_column("side")
    table.add_column("ms a step", justify="right")
    for side, seconds in (
        (f"Quest, {work.pages} pages", record.sparse_seconds),
        ("dense, torch SDPA", record.sdpa_seconds),
        ("dense, torch matmul", record.matmul_seconds),
        *((f"selection at {row.context} tokens", row.seconds) for row in record.selection),
    ):
        table.add_row(side, f"{seconds * 1e3:.1f}")
    lines = (
        f"Quest is {record.quest_128k_vs_dense_torch:.1f} times as fast as dense attention.",
        f"Selecting a page costs {record.growth:.2f} times as much at the larger size.",
        f"Dense attention agrees with torch to {record.dense_error:.1e} of a row's norm.",
    )
    return Group(table, Text("\n".join(lines)))
