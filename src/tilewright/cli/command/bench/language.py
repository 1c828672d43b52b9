"""``tilewright bench language``: kernels here beside Triton's interpreter."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.bench.language.speed import LanguageBenchSpec, run_language_bench
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine
from tilewright.records.bench import LanguageBenchRecord


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
    return Outcome(record, _view(record), passed=record.values_ok)


def _view(record: LanguageBenchRecord) -> RenderableType:
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
