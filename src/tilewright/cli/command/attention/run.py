"""``tilewright attention run``: one flow on seeded data, beside dense attention."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.attention.graph import DType
from tilewright.cli.command.attention.machine import (
    decode_view,
    run_on_machines,
    side_by_side,
)
from tilewright.cli.command.attention.run_option import (
    BATCH,
    CONTEXT,
    OF_MACHINE,
    OF_REFERENCE,
    Arrays,
    Backend,
    RunOptions,
    refuse,
    trace,
)
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.records.attention.decode import (
    AttentionDecodeRecord,
    AttentionDecodeSweepRecord,
)
from tilewright.records.attention.run import AttentionRunRecord
from tilewright.studies.attention_trial import TrialSpec, run_trial


def run(options: RunOptions) -> Outcome:
    """Run a flow beside dense attention, for quality or for time.

    reference: decode some tokens and compare every step with dense attention. Keys and values are
    random; each step has a needle in every KV head, a key that its query points to. Shown: pages,
    the share of the dense softmax that was read, the error of the output, the needles that were
    found, and the bytes that were touched.

    machine: one decode step of one layer's attention on a simulated machine, dense and sparse:
    latency, bytes of each stage beside the least that it must move, speed-up, bottleneck.

    \b
      tilewright attention run --flow quest --context 16384 --budget 64
      tilewright attention run --flow quest --backend machine --model llama-3-8b \\
        --batch 32 --context 131072 --budget 64 --placement head
    """
    if options.backend is Backend.MACHINE:
        refuse(options, OF_REFERENCE, Backend.REFERENCE)
        return _outcome(run_on_machines(options))
    refuse(options, OF_MACHINE, Backend.MACHINE)
    graph, notes = trace(options, DType.FLOAT32)
    spec = TrialSpec(
        context=options.context or CONTEXT,
        batch=options.batch or BATCH,
        budget=options.budget,
        state_advance=options.state_advance,
        steps=options.steps or 4,
        kv_heads=options.kv_heads or 2,
        seed=options.seed,
        namespace=(options.arrays or Arrays.NUMPY).value,
        notes=notes,
    )
    record = run_trial(graph, spec, progress=note)
    return Outcome(record, _view(record))


def _outcome(records: Sequence[AttentionDecodeRecord]) -> Outcome:
    """Return one record, or one that holds those of several machines."""
    if len(records) == 1:
        return Outcome(records[0], decode_view(records[0]), passed=records[0].ok)
    passed = all(record.ok for record in records)
    swept = AttentionDecodeSweepRecord(ok=passed, versions=records[0].versions, rows=tuple(records))
    return Outcome(swept, Group(*map(decode_view, records), side_by_side(records)), passed=passed)


def _view(record: AttentionRunRecord) -> RenderableType:
    pages, mass, counts, rows = record.pages, record.mass, record.num_bytes, record.rows
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(rows.dense.items()))
    dense = f"{sum(rows.dense.values())} dense" + (f" ({reasons})" if reasons else "")
    read = counts.kv_read + counts.summary_read + counts.state_read
    title = f"{record.flow}: {record.sizes.batch} requests of {record.sizes.context} tokens"
    table = Table(title=title, show_header=False)
    for label, text in (
        ("rows", f"{rows.sparse} sparse, {dense}"),
        ("pages read", f"{pages.read} of {pages.in_rows} ({pages.scored} scored)"),
        ("mass captured", f"{mass.mean:.4f} mean, {mass.worst:.4f} worst head"),
        ("mass against the best pages", f"{mass.against_oracle:.4f}"),
        (
            "output error",
            f"{record.output_error_mean:.2e} mean, {record.output_error_worst:.2e} worst head",
        ),
        ("needles found", f"{record.needles.found} of {record.needles.planted}"),
        ("bytes of keys and values read", f"{counts.kv_read:,}"),
        ("bytes of summaries read", f"{counts.summary_read:,}"),
        ("bytes of state read and written", f"{counts.state_read + counts.state_written:,}"),
        ("read, of what dense reads", f"{read / counts.dense_kv_read:.3f}"),
        ("NaN scores", f"{rows.nan_scores}"),
    ):
        table.add_row(label, text)
    return Group(table, *map(Text, record.notes))
