"""``tilewright run``: a program's values and time, and why it takes that time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.arguments import SetOption
from tilewright.cli.completion import complete_machine, complete_program
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.phases_option import PhasesOption
from tilewright.cli.progress import progress_line
from tilewright.cli.startup import announced_engine, machine_of
from tilewright.engine import EngineKind
from tilewright.engine.spec import parse_limits
from tilewright.errors import UsageError
from tilewright.processes import num_cores
from tilewright.programs.parameter import parse_parameters
from tilewright.records import check_targets, write_record
from tilewright.records.document import JsonScalar
from tilewright.records.run_sweep import RunSweepRecord
from tilewright.report.plot import check_plot_path
from tilewright.report.run.sweep_plot import draw_sweep
from tilewright.report.run.sweep_table import sweep_view
from tilewright.report.run.table import run_view
from tilewright.report.svg import write_svg
from tilewright.studies.run.command import TRACE_LIMIT, RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source
from tilewright.studies.run.sweep import Points, run_sweep, sweep_of

HELP = """Run a program on a simulated machine: values, time, and why.

A program is a ready one by its name (tilewright list), or a Python file with
run(torch): it makes tensors and launches kernels on the context that it gets.

The table tells the latency of what is measured, the least time that the
machine's figures allow, whether the values are right, and where the time
went: along the critical path of the program that ends last. For that the
program is run twice, the second time with a trace; --once leaves it out.

Defaults of a ready program that the machine has no room for become smaller,
and a line says so. What you set with --param stays as it is.

A run shorter than 20 refresh intervals of the memory depends on when refresh
falls. So it is repeated with refresh at other phases (--phases, at most 16
times unless you say more), and the latency is the mean with its half-width.
Values, breakdown and trace are those of phase 0, the machine as it is.

Examples:

\b
  tilewright run qkv_gemm
  tilewright run matmul --param m=1024 --param staging=load/ref
  tilewright run softmax --set pe.vector.lanes=1024 --record wide.json
  tilewright run matmul --sweep n=128,256,512 --sweep pes=1,8 --plot n.svg
  tilewright run allreduce --machine ahbm-6sip --bytes 8388608 --buffer sram
  tilewright run mine.py --machine ahbm-small --trace mine.pftrace

--trace writes a timeline for ui.perfetto.dev: what each unit and DMA channel
does, by line of the kernel, and how busy the links are.

Exit status: 0 it ran and its values are right or not checked, 1 values are
wrong, a check failed or --sanitize found a mistake, 2 wrong input, 130
interrupted; then the record says what was known by then."""

ProgramArgument = Annotated[
    str,
    typer.Argument(
        metavar="BENCH|FILE",
        autocompletion=complete_program,
        help="A ready program, or a Python file.",
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|PRESET",
        autocompletion=complete_machine,
        help="A machine file or preset. Default: the program's.",
    ),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Set a parameter; may be repeated."),
]
BytesOption = Annotated[
    str | None, typer.Option("--bytes", metavar="N", help="Of a collective: --param bytes=N.")
]
AlgorithmOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a collective: --param algorithm=NAME.")
]
BufferOption = Annotated[
    str | None, typer.Option(metavar="tcm|sram|hbm", help="Of messages: --param buffer=...")
]
DeviceOption = Annotated[
    str, typer.Option(metavar="all|sip:N", help="Which SIPs the program may use.")
]
EngineOption = Annotated[
    EngineKind | None,
    typer.Option(help="Which engine; both give the same figures. Default: native if it is there."),
]
NoDataOption = Annotated[
    bool, typer.Option("--no-data", help="Only time: float tensors carry no values.")
]
SanitizeOption = Annotated[
    bool, typer.Option("--sanitize", help="Look for races and accesses that are wrong.")
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        help="Stop a run beyond so many programs of a launch, commands of a program, events, or "
        "so much simulated time (time=2 s); may be repeated.",
    ),
]
OnceOption = Annotated[
    bool,
    typer.Option("--once", help="Run once: one refresh phase, and a breakdown by launches alone."),
]
RecordOption = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Write the record of the run here too.")
]
TraceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a Perfetto timeline into this file.")
]
TraceLimitOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Write at most so many events.")
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="NAME=V,V|ready",
        help="Run every combination of these values; ready: the program's own points (matmul).",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that share the points of a sweep: one a core."),
]
PlotOption = Annotated[
    Path | None, typer.Option(metavar="FILE.svg", help="Draw the sweep into this file.")
]


def run(
    program: ProgramArgument,
    machine: MachineOption = None,
    set_: SetOption = None,
    param: ParamOption = None,
    bytes_: BytesOption = None,
    algorithm: AlgorithmOption = None,
    buffer: BufferOption = None,
    device: DeviceOption = "all",
    seed: Annotated[int, typer.Option(min=0, help="Of all random numbers.")] = 0,
    engine: EngineOption = None,
    no_data: NoDataOption = False,
    sanitize: SanitizeOption = False,
    limit: LimitOption = None,
    once: OnceOption = False,
    phases: PhasesOption = None,
    record: RecordOption = None,
    trace: TraceOption = None,
    trace_limit: TraceLimitOption = TRACE_LIMIT,
    sweep: SweepOption = None,
    jobs: JobsOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> Outcome:
    _check_files(record, trace, plot, sweep)
    if jobs is not None and not sweep:
        raise UsageError("--jobs", "no --sweep", "points to share", "leave it out, or add --sweep")
    if once and phases not in (None, 1):
        fix = "leave one of them out"
        raise UsageError("--once", f"--phases {phases}", "one run", fix)
    source = find_source(program)
    named_options = {"bytes": bytes_, "algorithm": algorithm, "buffer": buffer}
    texts = _texts(param or (), named_options)
    values = parse_parameters(source.parameters, texts, where=source.name)
    named = source.machine if machine is None else machine
    simulated = machine_of(named, set_ or ())
    request = RunRequest(
        source, values, simulated, named, tuple(set_ or ()),
        device, seed, announced_engine(engine), not no_data, sanitize,
        frozenset(values.keys() - texts.keys()),
        parse_limits(limit or ()),
    )  # fmt: skip
    options: dict[str, JsonScalar] = {
        "device": device, "data": not no_data, "sanitize": sanitize, "once": once, "phases": phases,
    }  # fmt: skip
    with progress_line(is_wanted=not json_, what="run") as progress:
        if sweep:
            points = sweep_of(source, sweep)
            _check_set_once(points, texts)
            swept = run_sweep(
                request, points, progress, jobs or num_cores(), is_once=once, phases=phases
            )
            return _swept(swept, record, plot)
        watch = RunWatch(trace, trace_limit, progress, once, phases)
        found = run_program(request, watch, options)
    if record is not None:
        write_record(record, found)
    is_interrupted = found.status == "interrupted"
    return Outcome(found, run_view(found), passed=found.ok, is_interrupted=is_interrupted)


def _check_files(
    record: Path | None, trace: Path | None, plot: Path | None, sweep: list[str] | None
) -> None:
    """Refuse, before any work is done, files that cannot be written or that nobody can fill."""
    if plot is not None:
        check_plot_path(plot)
    check_targets({"record": record, "trace": trace, "plot": plot})
    if plot is not None and not sweep:
        raise UsageError("--plot", "no --sweep", "a sweep to draw", "add --sweep NAME=VALUE,VALUE")
    if trace is not None and sweep:
        raise UsageError("--trace", "a sweep", "one run to trace", "leave --sweep or --trace out")


def _check_set_once(points: Points, texts: Mapping[str, str]) -> None:
    """What a sweep sets, nothing else may set."""
    for name in dict.fromkeys(name for point in points for name in point):
        if name in texts:
            found, expected = f"{name}, which is {texts[name]} by another option", "it in one place"
            raise UsageError("--sweep", found, expected, "leave one of them out")


def _swept(found: RunSweepRecord, record: Path | None, plot: Path | None) -> Outcome:
    if record is not None:
        write_record(record, found)
    if plot is not None:
        write_svg(plot, draw_sweep(found))
    is_interrupted = found.status == "interrupted"
    return Outcome(found, sweep_view(found), passed=found.ok, is_interrupted=is_interrupted)


def _texts(params: Sequence[str], named: Mapping[str, str | None]) -> dict[str, str]:
    """Of parameters by name: some have options of their own."""
    found = {name: value for name, value in named.items() if value is not None}
    for text in params:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError("--param", repr(text), "NAME=VALUE", "write it like --param m=128")
        if name in found:
            raise UsageError("--param", f"{name} twice", "it once", "leave one out")
        found[name] = value
    return found
