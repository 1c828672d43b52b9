"""What commands that simulate share: engine and refresh phases, and what is told first."""

from collections.abc import Sequence
from typing import Annotated

import typer

from tilewright.analysis.phases import MAX_PHASES
from tilewright.cli.output import note
from tilewright.engine import AUTO, EngineKind, native_built, resolve_engine
from tilewright.machine.build import Machine
from tilewright.machine.file.explain import unused_keys
from tilewright.machine.parse import load_machine_document, machine_of_document

EngineOption = Annotated[
    EngineKind | None,
    typer.Option(help="Which engine; both give the same figures. Default: native if it is there."),
]
PhasesOption = Annotated[
    int | None,
    typer.Option(
        "--phases",
        metavar="N",
        min=1,
        max=MAX_PHASES,
        help="Repeat with refresh at N phases. Default: until the mean is known to 2 %, at most"
        " 16; 1 if a run is longer than 20 refresh intervals.",
    ),
]


def machine_of(source: str, overrides: Sequence[str] = ()) -> Machine:
    """Return the machine of a file or preset, and tell keys without effect."""
    document = load_machine_document(source, overrides)
    machine = machine_of_document(document)
    for warning in unused_keys(document, machine.spec):
        note(f"warning: {warning}")
    return machine


def announced_engine(wanted: EngineKind | None = None) -> EngineKind:
    """Return the engine that a command runs on, and tell it; None: the fastest that is there."""
    built = native_built()
    kind = resolve_engine(AUTO if wanted is None else wanted, native_built=built)
    note(engine_line(kind.value, built))
    return kind


def engine_line(kind: str, native_built: bool) -> str:
    """Say which engine runs and, without a compiled core, how to get it.

    >>> engine_line("native", native_built=True)
    'engine: native (compiled core)'
    """
    if kind == "native":
        return "engine: native (compiled core)"
    if native_built:
        return f"engine: {kind} (pure Python, although the compiled core is there)"
    return (
        f"engine: {kind} (pure Python: this install has no compiled core; "
        "for the native engine install a C++ compiler, then reinstall tilewright)"
    )
