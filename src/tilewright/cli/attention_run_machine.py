"""``tilewright attention run --backend machine``: one decode step, dense and sparse."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.attention.backends.machine import (
    Recent,
    Recorded,
    RowPlacement,
    SelectionModel,
    Tuner,
    TuneSpec,
    Uniform,
    choose_placement,
    placement_costs,
    tiling_of,
)
from tilewright.attention.codegen import Tiling
from tilewright.attention.graph import Graph
from tilewright.attention.planner import PlanSpec, RowFacts, StateAdvance, parse_policy, plan_step
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import announced_engine, machine_of
from tilewright.engine import EngineKind
from tilewright.errors import UsageError
from tilewright.machine.build import Machine
from tilewright.records import check_target, installed_versions, read_record, write_record
from tilewright.records.attention.decode import (
    AttentionDecodeRecord,
    AttentionDecodeSweepRecord,
    DecodeAttention,
    SelectionRecord,
)
from tilewright.report.phase_words import ends_text, width_text
from tilewright.studies.decode.record import DecodeComparison, compare_with_dense
from tilewright.units import format_bytes, format_ps

MOST_VALUE_BYTES = 64 * 2**20  # of keys and values: above, values are left out unless asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRun:
    """What the command line says about a step on machines."""

    graph: Graph
    model: str | None
    layers: int
    contexts: tuple[int, ...]
    kv_heads: int
    budget: int
    state_advance: StateAdvance
    machines: tuple[str, ...]
    overrides: tuple[str, ...]
    placement: RowPlacement | None  # None: what each machine is expected to do fastest
    selection: str | None
    data: bool | None
    device: str
    seed: int
    engine: EngineKind | None
    sanitize: bool
    save_selection: Path | None
    tune: bool
    phases: int | None  # of refresh; None: by the rule
    notes: tuple[str, ...] = ()  # of the flow

    @property
    def plan(self) -> PlanSpec:
        return PlanSpec(budget=parse_policy(str(self.budget)), state_advance=self.state_advance)

    @property
    def value_bytes(self) -> int:
        """Of all keys and values."""
        geometry = self.graph.geometry
        channels = sum(width for _, width in geometry.reserved_fields.values())
        return sum(self.contexts) * self.kv_heads * channels * geometry.kv_dtype.bits // 8


def run_on_machines(run: MachineRun) -> Outcome:
    """One record, or one that holds those of several machines."""
    if run.save_selection is not None:
        check_target(run.save_selection, "selection")
        if len(run.machines) > 1:
            said, fix = "--save-selection and several machines", "leave all but one out"
            raise UsageError("command line", said, "pages of one machine", fix)
    kind = announced_engine(run.engine)
    model, notes = _selection(run)
    if run.sanitize and model is not None:
        said, fix = "--sanitize without values", "add --data, and leave --selection out"
        expected = "values: memory that nobody has written is a finding"
        raise UsageError("command line", said, expected, fix)
    notes = (*run.notes, *notes)
    found = [
        compare_with_dense(_comparison(run, source, model, kind, notes), tell=note)
        for source in run.machines
    ]
    if run.save_selection is not None:
        write_record(run.save_selection, found[0].selection())
    records = [each.record for each in found]
    if len(records) == 1:
        return Outcome(records[0], _view(records[0]), passed=records[0].ok)
    swept = AttentionDecodeSweepRecord(
        ok=all(record.ok for record in records),
        versions=installed_versions(engine=kind.value),
        rows=tuple(records),
    )
    return Outcome(swept, Group(*map(_view, records), _side_by_side(records)), passed=swept.ok)


def _selection(run: MachineRun) -> tuple[SelectionModel | None, tuple[str, ...]]:
    """How pages are chosen; None: by scores, so with values. And what the record says about it."""
    if run.data and run.selection is not None:
        found, fix = f"--data and --selection {run.selection}", "leave one of them out"
        raise UsageError("command line", found, "scores that choose, or a selection", fix)
    if run.selection is not None:
        return _named_selection(run), ()
    if run.data is None and run.value_bytes > MOST_VALUE_BYTES:
        size, most = format_bytes(run.value_bytes), format_bytes(MOST_VALUE_BYTES)
        text = f"without values: keys and values have {size}, more than {most}; --data has them"
        note(f"{text}; pages are chosen by the selection model 'uniform'")
        return Uniform(run.seed), (text,)
    return (Uniform(run.seed) if run.data is False else None), ()


def _named_selection(run: MachineRun) -> SelectionModel:
    match run.selection:
        case "uniform":
            return Uniform(run.seed)
        case "recent":
            return Recent()
    file = Path(str(run.selection))
    recorded = read_record(file, SelectionRecord)
    sizes = {
        "page size": (recorded.page_size, run.graph.geometry.page_size),
        "contexts": (recorded.contexts, run.contexts),
        "KV heads": (recorded.kv_heads, run.kv_heads),
    }
    for name, (found, expected) in sizes.items():
        if found != expected:
            fix = "record a selection of the same sizes with --save-selection"
            raise UsageError(f"--selection {file}", f"{name} {found}", f"{name} {expected}", fix)
    return Recorded(recorded.pages, str(file))


def _comparison(
    run: MachineRun,
    source: str,
    model: SelectionModel | None,
    kind: EngineKind,
    notes: tuple[str, ...],
) -> DecodeComparison:
    machine = machine_of(source, run.overrides)
    placement, tiling = run.placement, None
    if placement is None:
        placement, text = _placed(run, machine)
        notes = (*notes, text)
    if run.tune:
        tiling, text = _tuned(run, machine, placement, kind)
        notes = (*notes, text)
    return DecodeComparison(
        machine=machine,
        tiling=tiling,
        machine_source=source,
        overrides=run.overrides,
        graph=run.graph,
        model=run.model,
        layers=run.layers,
        contexts=run.contexts,
        kv_heads=run.kv_heads,
        budget=run.budget,
        state_advance=run.state_advance,
        placement=placement,
        selection=model,
        device=run.device,
        seed=run.seed,
        engine=kind,
        sanitize=run.sanitize,
        notes=notes,
        phases=run.phases,
    )


def _placed(run: MachineRun, machine: Machine) -> tuple[RowPlacement, str]:
    """The placement that is expected to take the least time, and what the others would take."""
    size = run.graph.geometry.page_size
    facts = [
        RowFacts(-(-count // size), count, head=head)
        for count in run.contexts
        for head in range(run.kv_heads)
    ]
    costs = placement_costs(
        machine,
        run.graph,
        plan_step(run.plan, facts),
        num_tokens=run.contexts,
        num_kv_heads=run.kv_heads,
        device=run.device,
    )
    taken = choose_placement(costs)
    others = ", ".join(str(cost) for cost in costs if cost is not taken)
    return taken.placement, f"placement by expected time: {taken}; {others}"


def _tuned(
    run: MachineRun, machine: Machine, placement: RowPlacement, kind: EngineKind
) -> tuple[Tiling, str]:
    """The tiling of the longest row, and what the record says about the search."""
    note(f"tuning the tiling on {machine.spec.name}")
    spec = TuneSpec(
        machine=machine,
        graph=run.graph,
        context=max(run.contexts),
        plan=run.plan,
        placement=placement,
        seed=run.seed,
        engine=kind,
    )
    found = Tuner().tune(spec)
    gain = found.trials[0].latency_ps / found.best.latency_ps
    text = f"tiling: best of {len(found.trials)}, {gain:.3f} times as fast as the generator's"
    return tiling_of(found.best), text


def _view(record: AttentionDecodeRecord) -> RenderableType:
    sizes = record.sizes
    tokens = f"{min(sizes.contexts):,}"
    if len(set(sizes.contexts)) > 1:
        tokens += f" to {max(sizes.contexts):,}"
    title = f"{record.flow} on {record.machine}: {sizes.batch} requests of {tokens} tokens, "
    title += f"{sizes.kv_heads} KV heads, placement {record.placement}, {record.num_pes} PEs"
    table = Table(title=title, title_justify="left")
    for heading in ("", "dense", "sparse"):
        table.add_column(heading, justify="left" if not heading else "right")
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
    lines = [
        f"speed-up {record.speedup:.2f}, of {record.bytes_bound_speedup:.2f} by bytes",
        f"pages chosen by {record.selection}; {_values_text(record)}",
        f"{record.tokens_per_s:,.0f} tokens/s, were attention all that {_layers(sizes.layers)}",
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


def _layers(number: int) -> str:
    return "a layer does" if number == 1 else f"{number} layers do"


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


def _side_by_side(records: Sequence[AttentionDecodeRecord]) -> Table:
    table = Table(title="Side by side", title_justify="left")
    for heading in ("machine", "dense", "sparse", "speed-up", "ratio", "tokens/s", "bottleneck"):
        table.add_column(heading)
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
