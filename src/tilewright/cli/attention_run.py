"""``tilewright attention run``: one flow on seeded data, beside dense attention."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table

from tilewright.attention.compat import find_flow, vortex_names
from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.graph import DType, FlowKind, Geometry
from tilewright.attention.passes import optimize_graph
from tilewright.benches.attention_trial import TrialSpec, run_trial
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.records.attention_run import AttentionRunRecord

__all__ = ("run",)

ROPE_WIDTH = 64  # of a latent; the rest of --head-dim is its value


class Backend(StrEnum):
    """Where a flow runs."""

    REFERENCE = "reference"


class Arrays(StrEnum):
    """The array library of the reference executor."""

    NUMPY = "numpy"
    TORCH = "torch"


def run(
    flow: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="A ready flow, or a flow file.")
    ] = "quest",
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which flow of a file with several.")
    ] = None,
    backend: Annotated[Backend, typer.Option(help="Where it runs.")] = Backend.REFERENCE,
    context: Annotated[int, typer.Option(min=1, help="Tokens of the prompt.")] = 4096,
    batch: Annotated[int, typer.Option(min=1, help="Requests.")] = 2,
    budget: Annotated[
        int, typer.Option(min=0, help="Pages that a row may read, reserved ones included.")
    ] = 32,
    steps: Annotated[int, typer.Option(min=1, help="Tokens to decode.")] = 4,
    page_size: Annotated[int, typer.Option(min=1, help="Tokens of a page.")] = 16,
    head_dim: Annotated[
        int | None,
        typer.Option(min=1, help="Width of a key: 128, or 576 for the latents of MLA flows."),
    ] = None,
    kv_heads: Annotated[int, typer.Option(min=1, help="KV heads; MLA flows have one.")] = 2,
    group: Annotated[int, typer.Option(min=1, help="Query heads that share a KV head.")] = 4,
    dtype: Annotated[DType, typer.Option(help="How keys, values and fields are kept.")] = (
        DType.FLOAT32
    ),
    arrays: Annotated[Arrays, typer.Option(help="Array library of the executor.")] = Arrays.NUMPY,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all data.")] = 1,
    _json: JsonOption = False,
) -> Outcome:
    """Decode under a flow and compare every step with dense attention.

    Keys and values are random; each step has a needle in every KV head, a key that its query
    points to. Shown: pages, the share of the dense softmax that was read, the error of the output,
    the needles that were found, and the bytes that were touched.

    tilewright attention run --flow quest --context 16384 --budget 64
    """
    del backend  # the parser has checked it, and there is one
    with vortex_names():
        label, made = find_flow(flow, name=name)
        graph = trace_flow(made, _geometry(made, page_size, head_dim, group, dtype), name=label)
    spec = TrialSpec(
        context=context,
        batch=batch,
        budget=budget,
        steps=steps,
        kv_heads=kv_heads,
        seed=seed,
        namespace=arrays.value,
    )
    record = run_trial(optimize_graph(graph), spec, progress=note)
    return Outcome(record, _view(record))


def _geometry(
    flow: FlowBase, page_size: int, head_dim: int | None, group: int, dtype: DType
) -> Geometry:
    if flow.kind is FlowKind.MLA:
        width = 512 + ROPE_WIDTH if head_dim is None else head_dim
        return Geometry.mla(
            page_size=page_size,
            kv_lora_rank=width - ROPE_WIDTH,
            qk_rope_head_dim=ROPE_WIDTH,
            query_heads=group,
            kv_dtype=dtype,
            query_dtype=dtype,
            field_dtype=dtype,
        )
    return Geometry.gqa(
        page_size=page_size,
        head_dim=128 if head_dim is None else head_dim,
        query_heads=group,
        kv_dtype=dtype,
        query_dtype=dtype,
        field_dtype=dtype,
    )


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
    return table
