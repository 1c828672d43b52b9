"""``tilewright attention run --backend machine``: one decode step, dense and sparse."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.attention.backends.machine import (
    Recent,
    Recorded,
    SelectionModel,
    Tuner,
    TuneSpec,
    Uniform,
    choose_placement,
    placement_costs,
    tiling_of,
)
from tilewright.attention.graph import DType, Graph
from tilewright.attention.planner import PlanSpec, parse_policy, plan_step
from tilewright.cli.command.attention.run_option import (
    PlacementWish,
    RunOptions,
    kv_heads_of,
    requests_of,
    trace,
    with_shape,
)
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine, machine_of
from tilewright.errors import UsageError
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.models import find_shape
from tilewright.records import check_target, read_record, write_record
from tilewright.records.attention.decode import (
    AttentionDecodeRecord,
    DecodeAttention,
    SelectionRecord,
)
from tilewright.report.format import ends_text, width_text
from tilewright.studies.decode.record import DecodeComparison, compare_with_dense
from tilewright.studies.decode.step import DecodeStep
from tilewright.units import format_bytes, format_ps

MOST_VALUE_BYTES = 64 * 2**20  # of keys and values: above, values are left out unless asked for


def run_on_machines(options: RunOptions) -> list[AttentionDecodeRecord]:
    """Compare the step with dense attention on each machine."""
    contexts = requests_of(options)
    shape = None if options.model is None else find_shape(options.model)
    options = with_shape(options, shape)
    graph, notes = trace(options, DType.FLOAT16, shape)
    sources, overrides = options.machine or [DEFAULT_PRESET], tuple(options.set_ or ())
    _check_file(options.save_selection, sources)
    kind, kv_heads = announced_engine(options.engine), kv_heads_of(options, graph)
    selection, more = _selection(options, graph, contexts, kv_heads)
    plan = PlanSpec(budget=parse_policy(str(options.budget)), state_advance=options.state_advance)
    found = []
    for source in sources:
        step = DecodeStep(
            machine=machine_of(source, overrides),
            graph=graph,
            contexts=contexts,
            kv_heads=kv_heads,
            plan=plan,
            selection=selection,
            device=options.device or "all",
            seed=options.seed,
            engine=kind,
            sanitize=options.sanitize,
        )
        step, chosen = _fitted(options, step)
        comparison = DecodeComparison(
            step=step,
            machine_source=source,
            overrides=overrides,
            model=None if shape is None else shape.name,
            layers=1 if shape is None else shape.layers,
            budget=options.budget,
            notes=(*notes, *more, *chosen),
            phases=options.phases,
        )
        found.append(compare_with_dense(comparison, tell=note))
    if options.save_selection is not None:
        write_record(options.save_selection, found[0].selection())
    return [each.record for each in found]


def _check_file(file: Path | None, sources: Sequence[str]) -> None:
    """Refuse, before any work is done, a file for pages that cannot be written."""
    if file is not None:
        check_target(file, "selection")
        if len(sources) > 1:
            said, fix = "--save-selection and several machines", "leave all but one out"
            raise UsageError("command line", said, "pages of one machine", fix)


def _selection(
    options: RunOptions, graph: Graph, contexts: tuple[int, ...], kv_heads: int
) -> tuple[SelectionModel | None, tuple[str, ...]]:
    """Return how pages are chosen, and what the record says about that; None: by scores."""
    found: SelectionModel | None = None
    notes: tuple[str, ...] = ()
    if options.selection is not None:
        if options.data:
            said, fix = f"--data and --selection {options.selection}", "leave one of them out"
            raise UsageError("command line", said, "scores that choose, or a selection", fix)
        found = _named_selection(options, graph, contexts, kv_heads)
    elif options.data is not None:
        found = None if options.data else Uniform(options.seed)
    else:
        channels = sum(width for _, width in graph.geometry.reserved_fields.values())
        num_bytes = sum(contexts) * kv_heads * channels * graph.geometry.kv_dtype.bits // 8
        if num_bytes > MOST_VALUE_BYTES:
            size, most = format_bytes(num_bytes), format_bytes(MOST_VALUE_BYTES)
            text = f"without values: keys and values have {size}, more than {most}; --data has them"
            note(f"{text}; pages are chosen by the selection model 'uniform'")
            found, notes = Uniform(options.seed), (text,)
    if options.sanitize and found is not None:
        said, fix = "--sanitize without values", "add --data, and leave --selection out"
        expected = "values: memory that nobody has written is a finding"
        raise UsageError("command line", said, expected, fix)
    return found, notes


def _named_selection(
    options: RunOptions, graph: Graph, contexts: tuple[int, ...], kv_heads: int
) -> SelectionModel:
    match options.selection:
        case "uniform":
            return Uniform(options.seed)
        case "recent":
            return Recent()
    file = Path(str(options.selection))
    recorded = read_record(file, SelectionRecord)
    sizes = {
        "page size": (recorded.page_size, graph.geometry.page_size),
        "contexts": (recorded.contexts, contexts),
        "KV heads": (recorded.kv_heads, kv_heads),
    }
    for name, (found, expected) in sizes.items():
        if found != expected:
            fix = "record a selection of the same sizes with --save-selection"
            raise UsageError(f"--selection {file}", f"{name} {found}", f"{name} {expected}", fix)
    return Recorded(recorded.pages, str(file))


def _fitted(options: RunOptions, step: DecodeStep) -> tuple[DecodeStep, list[str]]:
    """Choose for the step's machine what is to be chosen; the record says why."""
    step = replace(
        step, placement=(options.placement or PlacementWish.HEAD).named or step.placement
    )
    notes = []
    if options.placement is PlacementWish.AUTO:
        costs = placement_costs(
            step.machine,
            step.graph,
            plan_step(step.plan, step.facts()),
            num_tokens=step.contexts,
            num_kv_heads=step.kv_heads,
            device=step.device,
        )
        taken = choose_placement(costs)
        others = ", ".join(str(cost) for cost in costs if cost is not taken)
        notes.append(f"placement by expected time: {taken}; {others}")
        step = replace(step, placement=taken.placement)
    if options.tune:
        note(f"tuning the tiling on {step.machine.spec.name}")
        spec = TuneSpec(
            machine=step.machine,
            graph=step.graph,
            context=max(step.contexts),
            plan=step.plan,
            placement=step.placement,
            seed=step.seed,
            engine=step.engine,
        )
        found = Tuner().tune(spec)
        gain = found.trials[0].latency_ps / found.best.latency_ps
        tried = f"tiling: best of {len(found.trials)}, {gain:.3f} times as fast as the generator's"
        notes.append(tried)
        step = replace(step, tiling=tiling_of(found.best))
    return step, notes


def decode_view(record: AttentionDecodeRecord) -> RenderableType:
    sizes = record.sizes
    tokens = f"{min(sizes.contexts):,}"
    if len(set(sizes.contexts)) > 1:
        tokens += f" to {max(sizes.contexts):,}"
    title = f"{record.flow} on {record.machine}: {sizes.batch} requests of {tokens} tokens, "
    title += f"{sizes.kv_heads} KV heads, placement {record.placement}, {record.num_pes} PEs"
    table = Table("", title=title, title_justify="left")
    for heading in ("dense", "sparse"):
        table.add_column(heading, justify="right")
    both = (record.dense, record.sparse)
    table.add_row("latency", *(format_ps(each.figure_ps) for each in both))
    if any(each.phases is not None for each in both):
        table.add_row("  over refresh phases", *(_spread_text(each) for each in both))
    table.add_row("lower bound", *(format_ps(each.bound_ps) for each in both))
    table.add_row("  of it latency", *(format_ps(each.bound_latency_ps or 0) for each in both))
    table.add_row("bytes", *(format_bytes(each.bytes) for each in both))
    table.add_row("of the HBM's peak", *(f"{100 * each.hbm_fraction:.0f} %" for each in both))
    for name in dict.fromkeys(stage.name for each in reversed(both) for stage in each.stages):
        table.add_row(f"  {name}", *(_stage_text(each, name) for each in both))
    layers = "a layer does" if sizes.layers == 1 else f"{sizes.layers} layers do"
    lines = [
        f"speed-up {record.speedup:.2f}, of {record.bytes_bound_speedup:.2f} by bytes",
        f"pages chosen by {record.selection}; {_values_text(record)}",
        f"{record.tokens_per_s:,.0f} tokens/s, were attention all that {layers}",
        f"bottleneck: {record.sparse.bottleneck}",
        *(() if record.findings is None else (f"sanitizer: {len(record.findings)} findings",)),
        *(record.findings or ()),
        *record.notes,
    ]
    return Group(table, Text("\n".join(lines)))


def _spread_text(attention: DecodeAttention) -> str:
    phases = attention.phases
    if phases is None or phases.reason == "long":
        return "-"
    if phases.count == 1:
        return "one of them"
    return f"{width_text(phases)} of {phases.count}, {ends_text(phases)}"


def _mean_text(attention: DecodeAttention) -> str:
    return f"{format_ps(attention.figure_ps)} {width_text(attention.phases)}".rstrip()


def _stage_text(attention: DecodeAttention, name: str) -> str:
    for stage in attention.stages:
        if stage.name == name:
            return f"{format_ps(stage.latency_ps)}, {format_bytes(stage.bytes)}"
    return "-"


def _values_text(record: AttentionDecodeRecord) -> str:
    if record.values_ok is None:
        return "no values"
    error = "" if record.max_error is None else f", error {record.max_error:.1e}"
    return f"values {'right' if record.values_ok else 'WRONG'}{error}"


def side_by_side(records: Sequence[AttentionDecodeRecord]) -> Table:
    headings = ("machine", "dense", "sparse", "speed-up", "ratio", "tokens/s", "bottleneck")
    table = Table(*headings, title="Side by side", title_justify="left")
    for record in records:
        table.add_row(
            record.machine_source,
            _mean_text(record.dense),
            _mean_text(record.sparse),
            f"{record.speedup:.2f}",
            f"{record.ratio:.2f}",
            f"{record.tokens_per_s:,.0f}",
            record.sparse.bottleneck,
        )
    return table
