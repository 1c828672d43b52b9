"""``tilewright run``: a program's values and time, and why it takes that time."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.option import SetOption, complete_program, machine_option
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.progress import progress_line
from tilewright.cli.startup import EngineOption, PhasesOption, announced_engine, machine_of
from tilewright.engine.spec import parse_limits
from tilewright.errors import UsageError
from tilewright.processes import num_cores
from tilewright.programs.parameter import parse_parameters
from tilewright.records import RunRecord, check_targets, write_record
from tilewright.records.run.record import RunSweepRecord
from tilewright.report.plot import check_plot_path
from tilewright.report.run.sweep import draw_sweep, sweep_view
from tilewright.report.run.table import run_view
from tilewright.report.svg import write_svg
from tilewright.studies.run.command import TRACE_LIMIT, RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source
from tilewright.studies.run.sweep import Points, run_sweep, sweep_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line says; None: not given."""

    program: Annotated[
        str,
        typer.Argument(
            metavar="BENCH|FILE",
            autocompletion=complete_program,
            help="A ready program, or a Python file.",
        ),
    ]
    machine: Annotated[
        str | None, machine_option("A machine file or preset. Default: the program's.")
    ] = None
    set_: SetOption = None
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="Set a parameter; may be repeated."),
    ] = None
    bytes_: Annotated[
        str | None, typer.Option("--bytes", metavar="N", help="Of a collective: --param bytes=N.")
    ] = None
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a collective: --param algorithm=NAME.")
    ] = None
    buffer: Annotated[
        str | None, typer.Option(metavar="tcm|sram|hbm", help="Of messages: --param buffer=...")
    ] = None
    device: Annotated[
        str, typer.Option(metavar="all|sip:N", help="Which SIPs the program may use.")
    ] = "all"
    seed: Annotated[int, typer.Option(min=0, help="Of all random numbers.")] = 0
    engine: EngineOption = None
    no_data: Annotated[
        bool, typer.Option("--no-data", help="Only time: float tensors carry no values.")
    ] = False
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Look for races and accesses that are wrong.")
    ] = False
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Stop a run beyond so many programs of a launch, commands of a program, events, "
            "or so much simulated time (time=2 s); may be repeated.",
        ),
    ] = None
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Run once: one refresh phase, and a breakdown by launches alone."
        ),
    ] = False
    phases: PhasesOption = None
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the record of the run here too."),
    ] = None
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Perfetto timeline into this file.")
    ] = None
    trace_limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Write at most so many events.")
    ] = TRACE_LIMIT
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="NAME=V,V|ready",
            help="Run every combination of these values; ready: the program's own points (matmul).",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that share the points of a sweep: one a core."),
    ] = None
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the sweep into this file.")
    ] = None
    json: JsonOption = False


def run(options: RunOptions) -> Outcome:
    """Run a program on a simulated machine: values, time, and why.

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
    interrupted; then the record says what was known by then.
    """
    _check(options)
    found = _found(options)
    if options.record is not None:
        write_record(options.record, found)
    if isinstance(found, RunRecord):
        view = run_view(found)
    else:
        view = sweep_view(found)
        if options.plot is not None:
            write_svg(options.plot, draw_sweep(found))
    return Outcome(found, view, passed=found.ok)


def _found(options: RunOptions) -> RunRecord | RunSweepRecord:
    """Run the program, once or at the points of a sweep."""
    source = find_source(options.program)
    texts = _texts(options)
    values = parse_parameters(source.parameters, texts, where=source.name)
    named = source.machine if options.machine is None else options.machine
    overrides = tuple(options.set_ or ())
    request = RunRequest(
        source, values, machine_of(named, overrides), named, overrides,
        options.device, options.seed, announced_engine(options.engine),
        not options.no_data, options.sanitize,
        frozenset(values.keys() - texts.keys()),
        parse_limits(options.limit or ()),
    )  # fmt: skip
    with progress_line(is_wanted=not options.json, what="run") as tell:
        watch = RunWatch(options.trace, options.trace_limit, tell, options.once, options.phases)
        if options.sweep:
            points = sweep_of(source, options.sweep)
            _check_set_once(points, texts)
            jobs = options.jobs or num_cores()
            return run_sweep(request, points, watch, jobs)
        return run_program(request, watch)


def _check(options: RunOptions) -> None:
    """Refuse, before any work is done, files that cannot be written or that nobody can fill."""
    trace, plot, sweep, phases = options.trace, options.plot, options.sweep, options.phases
    if plot is not None:
        check_plot_path(plot)
    check_targets({"record": options.record, "trace": trace, "plot": plot})
    if plot is not None and not sweep:
        raise UsageError("--plot", "no --sweep", "a sweep to draw", "add --sweep NAME=VALUE,VALUE")
    if trace is not None and sweep:
        raise UsageError("--trace", "a sweep", "one run to trace", "leave --sweep or --trace out")
    if options.jobs is not None and not sweep:
        raise UsageError("--jobs", "no --sweep", "points to share", "leave it out, or add --sweep")
    if options.once and phases not in (None, 1):
        fix = "leave one of them out"
        raise UsageError("--once", f"--phases {phases}", "one run", fix)


def _check_set_once(points: Points, texts: Mapping[str, str]) -> None:
    """What a sweep sets, nothing else may set."""
    for name in dict.fromkeys(name for point in points for name in point):
        if name in texts:
            found, expected = f"{name}, which is {texts[name]} by another option", "it in one place"
            raise UsageError("--sweep", found, expected, "leave one of them out")


def _texts(options: RunOptions) -> dict[str, str]:
    """Return parameters by name: some have options of their own."""
    own = {"bytes": options.bytes_, "algorithm": options.algorithm, "buffer": options.buffer}
    found = {name: value for name, value in own.items() if value is not None}
    for text in options.param or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError("--param", repr(text), "NAME=VALUE", "write it like --param m=128")
        if name in found:
            raise UsageError("--param", f"{name} twice", "it once", "leave one out")
        found[name] = value
    return found
