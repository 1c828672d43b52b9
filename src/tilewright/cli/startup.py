"""What a command that simulates tells first: its engine, and what of its machine is idle."""

from collections.abc import Sequence

from tilewright.cli.output import note
from tilewright.engine import AUTO, EngineKind, native_built, resolve_engine
from tilewright.machine.build import Machine
from tilewright.machine.file.explain import unused_keys
from tilewright.machine.parse import load_machine_document, machine_of_document


def machine_of(source: str, overrides: Sequence[str] = ()) -> Machine:
    """The machine of a file or preset; keys without effect are told."""
    document = load_machine_document(source, overrides)
    machine = machine_of_document(document)
    for warning in unused_keys(document, machine.spec):
        note(f"warning: {warning}")
    return machine


def announced_engine(wanted: EngineKind | None = None) -> EngineKind:
    """The engine that a command runs on, told to its user; None: the fastest that is there."""
    built = native_built()
    kind = resolve_engine(AUTO if wanted is None else wanted, native_built=built)
    note(engine_line(kind.value, built))
    return kind


def engine_line(kind: str, native_built: bool) -> str:
    """Which engine runs and, without a compiled core, how to get it.

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
