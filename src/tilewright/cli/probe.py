"""``tilewright probe``: what moving bytes costs on a machine, beside what it must cost."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tilewright.cli.arguments import SetOption
from tilewright.cli.completion import complete_machine
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.phases_option import PhasesOption
from tilewright.cli.probe_table import probe_view
from tilewright.cli.startup import announced_engine
from tilewright.engine import EngineKind
from tilewright.errors import UnitError
from tilewright.machine.build import Machine
from tilewright.machine.check import warnings_of
from tilewright.machine.file.explain import unused_keys
from tilewright.machine.parse import DEFAULT_PRESET, load_machine_document, machine_of_document
from tilewright.programs.probe.case import PROBE_CASES, SIZES
from tilewright.programs.probe.run import run_probe
from tilewright.report.plot import check_plot_path
from tilewright.report.probe_plot import draw_probe
from tilewright.report.svg import write_svg
from tilewright.units import format_bytes, parse_bytes

MAX_DIGITS = 18

_CASES = "\n".join(f"  {case.name:<16}  {case.description}" for case in PROBE_CASES.values())

# a \\b alone on its line: the parser keeps the lines of that paragraph as they are
HELP = f"""Measure a machine's latency and bandwidth beside lower bounds.

A case says who moves bytes where. All its issuers start together and move
--bytes each, through their DMA or over PCIe. A row tells the time until the
last issuer is done, the least time that the machine's figures allow, where
the time went, and which link or memory was used most. Rows shorter than 20
refresh intervals are repeated with refresh at other phases (--phases), and
the time is their mean. Sizes, unless you say
others: {", ".join(map(format_bytes, SIZES))}, and 16 MiB for local_all.

Cases:

\b
{_CASES}

Examples:

\b
  tilewright probe --case pe_local --case pe_far_cube --bytes 4KiB
  tilewright probe --machine ahbm-small --plot probe.svg
  tilewright probe --case hot_8 --set cube.noc.bytes_per_us="512 GB/s" --json

Without --case, all cases run that the machine has the parts for; on ahbm
that takes one to two minutes with the native engine, and far longer without.

Exit status: 0 every check holds, 1 a check failed and is named, 2 wrong input."""

CaseOption = Annotated[
    list[str] | None,
    typer.Option("--case", metavar="NAME", help="Run this case; may be repeated."),
]
BytesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bytes", metavar="SIZE", help="Bytes per issuer, 4096 or 64KiB; may be repeated."
    ),
]
MachineOption = Annotated[
    str,
    typer.Option(
        metavar="FILE|PRESET",
        autocompletion=complete_machine,
        help="A machine file, or the name of a preset.",
    ),
]
EngineOption = Annotated[
    EngineKind | None,
    typer.Option(help="Which engine; both give the same figures. Default: native if it is there."),
]
PlotOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.svg", help="Draw bandwidth and latency over size into this file."),
]


def probe(
    case: CaseOption = None,
    bytes_: BytesOption = None,
    machine: MachineOption = DEFAULT_PRESET,
    set_: SetOption = None,
    engine: EngineOption = None,
    phases: PhasesOption = None,
    plot: PlotOption = None,
    _json: JsonOption = False,
) -> Outcome:
    sizes = [parse_size(text) for text in bytes_ or ()]
    if plot is not None:
        check_plot_path(plot)
    found = _machine(machine, set_ or ())
    kind = announced_engine(engine)
    with _progress() as progress:
        record = run_probe(
            found, names=case or (), sizes=sizes, choice=kind, phases=phases, progress=progress
        )
    if plot is not None:
        write_svg(plot, draw_probe(record))
    return Outcome(record, probe_view(record), passed=record.ok)


def parse_size(text: str) -> int:
    """A size of the command line: with a unit, or a bare number of bytes.

    >>> parse_size("4096"), parse_size("64KiB"), parse_size("1 MiB")
    (4096, 65536, 1048576)
    """
    word = text.strip()
    is_bare = word.isascii() and word.isdecimal()
    fix = "write it like 4096 or '64 KiB'"
    if is_bare and len(word) > MAX_DIGITS:
        raise UnitError("--bytes", repr(text[:80]), "a size that a memory can have", fix)
    try:
        num_bytes = int(word) if is_bare else parse_bytes(word, where="--bytes")
    except UnitError as error:
        expected = error.expected if any(map(str.isalpha, word)) else "a number of bytes"
        raise UnitError("--bytes", error.found, expected, fix) from error
    if num_bytes < 1:
        raise UnitError("--bytes", repr(text), "at least one byte", fix)
    return num_bytes


def _machine(source: str, overrides: Sequence[str]) -> Machine:
    document = load_machine_document(source, overrides)
    machine = machine_of_document(document)
    for warning in (*unused_keys(document, machine.spec), *warnings_of(machine)):
        note(f"warning: {warning}")
    return machine


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """One line that changes, where standard error is a terminal; else a line for each row."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield note
        return
    with Console(stderr=True).status("probe") as status:
        yield status.update
