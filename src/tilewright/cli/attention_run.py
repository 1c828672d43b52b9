"""``tilewright attention run``: one flow on seeded data, beside dense attention."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.attention.backends.machine import RowPlacement
from tilewright.attention.flow import FlowBase, examine_flow
from tilewright.attention.flow.lint import EXACT_SELECTION
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph, dtypes_of
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import StateAdvance
from tilewright.cli.arguments import SetOption
from tilewright.cli.attention_run_machine import MachineRun, run_on_machines
from tilewright.cli.completion import complete_flow, complete_machine
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.phases_option import PhasesOption
from tilewright.cli.state_option import StateAdvanceOption
from tilewright.engine import EngineKind
from tilewright.errors import UsageError
from tilewright.interop.vortex import find_flow
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.models import MlaShape, ModelShape, find_shape
from tilewright.records.attention.run import AttentionRunRecord
from tilewright.studies.attention_trial import TrialSpec, run_trial


class PlacementWish(StrEnum):
    """A placement by name, or what the cost model expects to take the least time."""

    HEAD = RowPlacement.HEAD.value
    STRIPE = RowPlacement.STRIPE.value
    CUBE = RowPlacement.CUBE.value
    SIP = RowPlacement.SIP.value
    AUTO = "auto"

    @property
    def named(self) -> RowPlacement | None:
        """None: it is chosen for each machine."""
        return None if self is PlacementWish.AUTO else RowPlacement(self.value)


HELP = """Run a flow beside dense attention, for quality or for time.

reference: decode some tokens and compare every step with dense attention. Keys and values are
random; each step has a needle in every KV head, a key that its query points to. Shown: pages,
the share of the dense softmax that was read, the error of the output, the needles that were
found, and the bytes that were touched.

machine: one decode step of one layer's attention on a simulated machine, dense and sparse:
latency, bytes of each stage beside the least that it must move, speed-up, bottleneck.

\b
  tilewright attention run --flow quest --context 16384 --budget 64
  tilewright attention run --flow quest --backend machine --model llama-3-8b \\
    --batch 32 --context 131072 --budget 64 --placement head"""

CONTEXT, BATCH = 4096, 2  # tokens and requests, unless they are said
ROPE_WIDTH = 64  # of a latent; the rest of --head-dim is its value


class Backend(StrEnum):
    """Where a flow runs."""

    REFERENCE = "reference"
    MACHINE = "machine"


class KvDType(StrEnum):
    """Types of keys and values; pages of int8 and int4 have scales."""

    FLOAT32 = DType.FLOAT32.value
    FLOAT16 = DType.FLOAT16.value
    BFLOAT16 = DType.BFLOAT16.value
    FLOAT8_E4M3 = DType.FLOAT8_E4M3.value
    FLOAT8_E5M2 = DType.FLOAT8_E5M2.value
    INT8 = DType.INT8.value
    INT4 = DType.INT4.value


class Arrays(StrEnum):
    """The array library of the reference executor."""

    NUMPY = "numpy"
    TORCH = "torch"


FlowOption = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE", autocompletion=complete_flow, help="A ready flow, or a flow file."
    ),
]
NameOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which flow of a file with several.")
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Tokens of the prompt: 4096; machine: of a request, with the new one."
    ),
]
ContextsOption = Annotated[
    str | None,
    typer.Option(metavar="N,N,...", help="Machine: of each request, for --context and --batch."),
]
BatchOption = Annotated[int | None, typer.Option(min=1, help="Requests: 2.")]
BudgetOption = Annotated[
    int, typer.Option(min=0, help="Pages that a row may read, reserved ones included.")
]
HeadDimOption = Annotated[
    int | None,
    typer.Option(min=1, help="Width of a key: 128, or 576 for the latents of MLA flows."),
]
KvHeadsOption = Annotated[int | None, typer.Option(min=1, help="KV heads: 2; MLA flows have one.")]
GroupOption = Annotated[
    int | None, typer.Option(min=1, help="Query heads that share a KV head: 4.")
]
DtypeOption = Annotated[
    KvDType | None,
    typer.Option(
        help="How keys, values and fields are kept: float32; machine: float16, and no int type."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(metavar="SHAPE", help="Machine: heads and widths of a model, like llama-3-8b."),
]
MachineOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|PRESET",
        autocompletion=complete_machine,
        help="A machine; several are shown side by side.",
    ),
]
PlacementOption = Annotated[
    PlacementWish | None,
    typer.Option(help="Machine: how the pages of a row are cut over PEs. Default: head."),
]
SelectionOption = Annotated[
    str | None,
    typer.Option(
        metavar="uniform|recent|FILE",
        help="Machine, without values: which pages are read; FILE is of --save-selection.",
    ),
]
DataOption = Annotated[
    bool | None,
    typer.Option(
        "--data/--no-data",
        help="Machine: with values or without. Default: with, up to 64 MiB of keys and values.",
        show_default=False,
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option(metavar="all|sip:N", help="Machine: which SIPs have rows.")
]
EngineOption = Annotated[
    EngineKind | None, typer.Option(help="Machine: which engine. Default: native if it is there.")
]
SanitizeOption = Annotated[
    bool, typer.Option("--sanitize", help="Machine: look for races and wrong accesses.")
]
SaveSelectionOption = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Machine: keep the pages that were read.")
]
TuneOption = Annotated[
    bool, typer.Option("--tune", help="Machine: search the tiling by simulating one row.")
]


def run(
    flow: FlowOption = "quest",
    name: NameOption = None,
    backend: Annotated[Backend, typer.Option(help="Where it runs.")] = Backend.REFERENCE,
    context: ContextOption = None,
    contexts: ContextsOption = None,
    batch: BatchOption = None,
    budget: BudgetOption = 32,
    state_advance: StateAdvanceOption = StateAdvance.VORTEX,
    steps: Annotated[int | None, typer.Option(min=1, help="Tokens to decode: 4.")] = None,
    page_size: Annotated[int, typer.Option(min=1, help="Tokens of a page.")] = 16,
    head_dim: HeadDimOption = None,
    kv_heads: KvHeadsOption = None,
    group: GroupOption = None,
    dtype: DtypeOption = None,
    arrays: Annotated[
        Arrays | None, typer.Option(help="Array library of the reference: numpy.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all data.")] = 1,
    model: ModelOption = None,
    machine: MachineOption = None,
    set_: SetOption = None,
    placement: PlacementOption = None,
    selection: SelectionOption = None,
    data: DataOption = None,
    device: DeviceOption = None,
    engine: EngineOption = None,
    sanitize: SanitizeOption = False,
    save_selection: SaveSelectionOption = None,
    tune: TuneOption = False,
    phases: PhasesOption = None,
    _json: JsonOption = False,
) -> Outcome:
    sizes = _Sizes(page_size, head_dim, kv_heads, group, dtype)
    wanted = _MachineOptions(
        contexts, model, machine, set_, placement, selection, data, device, engine,
        sanitize or None, save_selection, tune or None, phases,
    )  # fmt: skip
    if backend is Backend.MACHINE:
        _refuse({"steps": steps, "arrays": arrays}, Backend.REFERENCE)
        tokens = _contexts(context, batch, contexts)
        step = _Step(tokens, budget, seed, state_advance)
        return _run_on_machines(flow, name, sizes, wanted, step)
    _refuse({item.name: getattr(wanted, item.name) for item in fields(wanted)}, Backend.MACHINE)
    spec = TrialSpec(
        context=CONTEXT if context is None else context,
        batch=BATCH if batch is None else batch,
        budget=budget,
        state_advance=state_advance,
        steps=4 if steps is None else steps,
        kv_heads=2 if kv_heads is None else kv_heads,
        seed=seed,
        namespace=(arrays or Arrays.NUMPY).value,
    )
    graph, notes = _graph(flow, name, sizes, DType.FLOAT32)
    record = run_trial(graph, replace(spec, notes=notes), progress=note)
    return Outcome(record, _view(record))


@dataclass(frozen=True, slots=True)
class _MachineOptions:
    """What only the backend ``machine`` has; None: not given. Named as the options are."""

    contexts: str | None
    model: str | None
    machine: list[str] | None
    set: list[str] | None
    placement: PlacementWish | None
    selection: str | None
    data: bool | None
    device: str | None
    engine: EngineKind | None
    sanitize: bool | None
    save_selection: Path | None
    tune: bool | None
    phases: int | None


@dataclass(frozen=True, slots=True)
class _Step:
    """The decode step that the backend ``machine`` simulates."""

    contexts: tuple[int, ...]  # tokens of each request
    budget: int
    seed: int
    state_advance: StateAdvance


def _run_on_machines(
    flow: str,
    name: str | None,
    sizes: "_Sizes",
    wanted: _MachineOptions,
    step: _Step,
) -> Outcome:
    shape = None if wanted.model is None else find_shape(wanted.model)
    of_model = sizes.of_model(shape)
    graph, notes = _graph(flow, name, of_model, DType.FLOAT16, shape)
    return run_on_machines(
        MachineRun(
            graph=graph,
            model=None if shape is None else shape.name,
            layers=1 if shape is None else shape.layers,
            contexts=step.contexts,
            kv_heads=_kv_heads(graph, of_model),
            budget=step.budget,
            state_advance=step.state_advance,
            machines=tuple(wanted.machine or (DEFAULT_PRESET,)),
            overrides=tuple(wanted.set or ()),
            placement=(wanted.placement or PlacementWish.HEAD).named,
            selection=wanted.selection,
            data=wanted.data,
            device=wanted.device or "all",
            seed=step.seed,
            engine=wanted.engine,
            sanitize=bool(wanted.sanitize),
            save_selection=wanted.save_selection,
            tune=bool(wanted.tune),
            phases=wanted.phases,
            notes=notes,
        )
    )


def _check_kind(label: str, flow: FlowBase, shape: ModelShape) -> None:
    """A model keeps latents, or keys and values; a flow is for one of them."""
    kind = FlowKind.MLA if isinstance(shape, MlaShape) else FlowKind.GQA
    if flow.kind is not kind:
        found = f"the {flow.kind} flow {label!r} for {shape.name}"
        raise UsageError("--model", found, f"a flow of kind {kind}", "choose another flow or model")


def _refuse(given: Mapping[str, object], backend: Backend) -> None:
    """Options that the other backend has."""
    found = [f"--{name.replace('_', '-')}" for name in given if given[name] is not None]
    if found:
        fix = f"leave it out, or say --backend {backend}"
        expected = f"options of the backend that runs; it is one of {backend}"
        raise UsageError("command line", ", ".join(found), expected, fix)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What the command line says about a row; None: the default."""

    page_size: int
    head_dim: int | None
    kv_heads: int | None
    group: int | None
    dtype: KvDType | None

    def of_model(self, shape: ModelShape | None) -> "_Sizes":
        """With the sizes of a model, which the command line must not contradict."""
        if shape is None:
            return self
        given = {"--head-dim": self.head_dim, "--kv-heads": self.kv_heads, "--group": self.group}
        named = [option for option, value in given.items() if value is not None]
        if named:
            fix = "leave one of them out"
            raise UsageError("command line", f"--model and {', '.join(named)}", "one of them", fix)
        if isinstance(shape, MlaShape):
            width = shape.kv_lora_rank + shape.qk_rope_head_dim
            return replace(self, head_dim=width, kv_heads=1, group=shape.query_heads)
        return replace(self, head_dim=shape.head_dim, kv_heads=shape.kv_heads, group=shape.group)


def _graph(
    flow: str,
    name: str | None,
    sizes: _Sizes,
    dtype: DType,
    shape: ModelShape | None = None,
) -> tuple[Graph, tuple[str, ...]]:
    """Return the graph of a flow, and what it asks for that no backend does."""
    label, made = find_flow(flow, name=name)
    if shape is not None:
        _check_kind(label, made, shape)
    geometry = _geometry(made, sizes, DType((sizes.dtype or dtype).value))
    traced = examine_flow(made, geometry, name=label)
    notes = tuple(str(lint) for lint in traced.warnings if lint.code == EXACT_SELECTION)
    return optimize_graph(traced.graph), notes


def _contexts(context: int | None, batch: int | None, contexts: str | None) -> tuple[int, ...]:
    """Tokens of each request; one option says them, or two others do."""
    if contexts is None:
        return (CONTEXT if context is None else context,) * (BATCH if batch is None else batch)
    for option, value in (("--context", context), ("--batch", batch)):
        if value is not None:
            said = f"{option} {value} beside --contexts {contexts}"
            expected, fix = "requests that are said once", "leave one of them out"
            raise UsageError("command line", said, expected, fix)
    try:
        found = tuple(int(text) for text in contexts.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        fix = "write it like --contexts 4096,60,1024"
        raise UsageError("--contexts", repr(contexts), "whole numbers of 1 and more", fix)
    return found


def _kv_heads(graph: Graph, sizes: _Sizes) -> int:
    if graph.geometry.kind is FlowKind.MLA:
        return 1
    return 2 if sizes.kv_heads is None else sizes.kv_heads


def _geometry(flow: FlowBase, sizes: _Sizes, dtype: DType) -> Geometry:
    dtypes = dtypes_of(dtype)
    group = 4 if sizes.group is None else sizes.group
    if flow.kind is FlowKind.MLA:
        width = 512 + ROPE_WIDTH if sizes.head_dim is None else sizes.head_dim
        _check_latents(width, sizes.kv_heads)
        return Geometry.mla(
            page_size=sizes.page_size,
            kv_lora_rank=width - ROPE_WIDTH,
            qk_rope_head_dim=ROPE_WIDTH,
            query_heads=group,
            **dtypes,
        )
    return Geometry.gqa(
        page_size=sizes.page_size,
        head_dim=128 if sizes.head_dim is None else sizes.head_dim,
        query_heads=group,
        **dtypes,
    )


def _check_latents(width: int, kv_heads: int | None) -> None:
    """Refuse sizes that latents do not have."""
    if kv_heads not in (None, 1):
        found, expected = f"--kv-heads {kv_heads} for an MLA flow", "1: all heads share one latent"
        raise UsageError("command line", found, expected, "say --group for the query heads")
    if width <= ROPE_WIDTH:
        found = f"--head-dim {width} for an MLA flow"
        expected = f"more than the {ROPE_WIDTH} channels that carry positions"
        raise UsageError("command line", found, expected, "say 576, or leave it out")


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
