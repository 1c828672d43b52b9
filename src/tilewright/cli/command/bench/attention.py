"""``tilewright bench attention``: sparse attention beside dense attention in torch."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.bench.attention import BenchSpec, run_attention_bench
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.records.bench import AttentionBenchRecord


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
    return Outcome(record, _view(record), passed=record.passed)


def _view(record: AttentionBenchRecord) -> RenderableType:
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
