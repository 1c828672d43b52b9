"""Options of ``attention run``, and the flow, the sizes and the requests that they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.attention.backends.machine import RowPlacement
from tilewright.attention.flow import FlowBase, examine_flow
from tilewright.attention.flow.lint import EXACT_SELECTION
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph, dtypes_of
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import StateAdvance
from tilewright.attention.verify import geometries
from tilewright.attention.verify.check import ROPE_WIDTH
from tilewright.cli.command.attention.option import HeadDimOption, StateAdvanceOption
from tilewright.cli.option import (
    NameOption,
    PageSizeOption,
    SetOption,
    complete_flow,
    machine_option,
)
from tilewright.cli.startup import PhasesOption
from tilewright.engine import EngineKind
from tilewright.errors import UsageError
from tilewright.interop.vortex import find_flow
from tilewright.models import MlaShape, ModelShape

CONTEXT, BATCH = 4096, 2  # tokens and requests, unless they are said


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line says; None: not given."""

    flow: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE", autocompletion=complete_flow, help="A ready flow, or a flow file."
        ),
    ] = "quest"
    name: NameOption = None
    backend: Annotated[Backend, typer.Option(help="Where it runs.")] = Backend.REFERENCE
    context: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens of the prompt: 4096; machine: of a request, with the new one."
        ),
    ] = None
    contexts: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...", help="Machine: of each request, for --context and --batch."
        ),
    ] = None
    batch: Annotated[int | None, typer.Option(min=1, help="Requests: 2.")] = None
    budget: Annotated[
        int, typer.Option(min=0, help="Pages that a row may read, reserved ones included.")
    ] = 32
    state_advance: StateAdvanceOption = StateAdvance.VORTEX
    steps: Annotated[int | None, typer.Option(min=1, help="Tokens to decode: 4.")] = None
    page_size: PageSizeOption = 16
    head_dim: HeadDimOption = None
    kv_heads: Annotated[
        int | None, typer.Option(min=1, help="KV heads: 2; MLA flows have one.")
    ] = None
    group: Annotated[
        int | None, typer.Option(min=1, help="Query heads that share a KV head: 4.")
    ] = None
    dtype: Annotated[
        KvDType | None,
        typer.Option(
            help="How keys, values and fields are kept: float32; machine: float16, and no int type."
        ),
    ] = None
    arrays: Annotated[
        Arrays | None, typer.Option(help="Array library of the reference: numpy.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of all data.")] = 1
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE", help="Machine: heads and widths of a model, like llama-3-8b."
        ),
    ] = None
    machine: Annotated[
        list[str] | None, machine_option("A machine; several are shown side by side.")
    ] = None
    set_: SetOption = None
    placement: Annotated[
        PlacementWish | None,
        typer.Option(help="Machine: how the pages of a row are cut over PEs. Default: head."),
    ] = None
    selection: Annotated[
        str | None,
        typer.Option(
            metavar="uniform|recent|FILE",
            help="Machine, without values: which pages are read; FILE is of --save-selection.",
        ),
    ] = None
    data: Annotated[
        bool | None,
        typer.Option(
            "--data/--no-data",
            help="Machine: with values or without. Default: with, up to 64 MiB of keys and values.",
            show_default=False,
        ),
    ] = None
    device: Annotated[
        str | None, typer.Option(metavar="all|sip:N", help="Machine: which SIPs have rows.")
    ] = None
    engine: Annotated[
        EngineKind | None,
        typer.Option(help="Machine: which engine. Default: native if it is there."),
    ] = None
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Machine: look for races and wrong accesses.")
    ] = False
    save_selection: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Machine: keep the pages that were read."),
    ] = None
    tune: Annotated[
        bool, typer.Option("--tune", help="Machine: search the tiling by simulating one row.")
    ] = False
    phases: PhasesOption = None


OF_REFERENCE = ("steps", "arrays")
OF_MACHINE = (
    "contexts", "model", "machine", "set_", "placement", "selection", "data", "device", "engine",
    "sanitize", "save_selection", "tune", "phases",
)  # fmt: skip
"""Options that only one backend has, in the order in which they are refused."""


def refuse(options: RunOptions, names: Sequence[str], backend: Backend) -> None:
    """Refuse options that the other backend has."""
    defaults = {each.name: each.default for each in fields(options)}
    given = [name for name in names if getattr(options, name) != defaults[name]]
    if given:
        found = ", ".join(f"--{name.strip('_').replace('_', '-')}" for name in given)
        fix = f"leave it out, or say --backend {backend}"
        expected = f"options of the backend that runs; it is one of {backend}"
        raise UsageError("command line", found, expected, fix)


def requests_of(options: RunOptions) -> tuple[int, ...]:
    """Return the tokens of each request; one option says them, or two others do."""
    contexts, pair = options.contexts, {"--context": options.context, "--batch": options.batch}
    if contexts is None:
        return (options.context or CONTEXT,) * (options.batch or BATCH)
    for option, value in pair.items():
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


def with_shape(options: RunOptions, shape: ModelShape | None) -> RunOptions:
    """Return the options with the sizes of a model, which none of them must contradict."""
    if shape is None:
        return options
    sizes = {
        "--head-dim": options.head_dim,
        "--kv-heads": options.kv_heads,
        "--group": options.group,
    }
    named = [option for option, value in sizes.items() if value is not None]
    if named:
        fix = "leave one of them out"
        raise UsageError("command line", f"--model and {', '.join(named)}", "one of them", fix)
    if isinstance(shape, MlaShape):
        width = shape.kv_lora_rank + shape.qk_rope_head_dim
        return replace(options, head_dim=width, kv_heads=1, group=shape.query_heads)
    return replace(options, head_dim=shape.head_dim, kv_heads=shape.kv_heads, group=shape.group)


def trace(
    options: RunOptions, dtype: DType, shape: ModelShape | None = None
) -> tuple[Graph, tuple[str, ...]]:
    """Return the graph of a flow, and what it asks for that no backend does."""
    label, made = find_flow(options.flow, name=options.name)
    if shape is not None:
        _check_kind(label, made, shape)
    geometry = _geometry(options, made, DType((options.dtype or dtype).value))
    traced = examine_flow(made, geometry, name=label)
    notes = tuple(str(lint) for lint in traced.warnings if lint.code == EXACT_SELECTION)
    return optimize_graph(traced.graph), notes


def kv_heads_of(options: RunOptions, graph: Graph) -> int:
    """Return the KV heads of a request."""
    return 1 if graph.geometry.kind is FlowKind.MLA else options.kv_heads or 2


def _check_kind(label: str, flow: FlowBase, shape: ModelShape) -> None:
    """A model keeps latents, or keys and values; a flow is for one of them."""
    kind = FlowKind.MLA if isinstance(shape, MlaShape) else FlowKind.GQA
    if flow.kind is not kind:
        found = f"the {flow.kind} flow {label!r} for {shape.name}"
        raise UsageError("--model", found, f"a flow of kind {kind}", "choose another flow or model")


def _geometry(options: RunOptions, flow: FlowBase, dtype: DType) -> Geometry:
    if flow.kind is FlowKind.MLA:
        _check_latents(options.head_dim, options.kv_heads)
    sizes = geometries(
        page_size=options.page_size, head_dim=options.head_dim, query_heads=options.group or 4
    )
    return replace(sizes[flow.kind], **dtypes_of(dtype))


def _check_latents(width: int | None, kv_heads: int | None) -> None:
    """Refuse sizes that latents do not have."""
    if kv_heads not in (None, 1):
        found, expected = f"--kv-heads {kv_heads} for an MLA flow", "1: all heads share one latent"
        raise UsageError("command line", found, expected, "say --group for the query heads")
    if width is not None and width <= ROPE_WIDTH:
        found = f"--head-dim {width} for an MLA flow"
        expected = f"more than the {ROPE_WIDTH} channels that carry positions"
        raise UsageError("command line", found, expected, "say 576, or leave it out")
