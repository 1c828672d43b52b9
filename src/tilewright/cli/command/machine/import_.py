"""``tilewright machine import``: a KernBench topology becomes a machine file."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.command.machine.show import all_problems
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.errors import UsageError
from tilewright.interop.kernbench.topology import Topology, resolve_topology
from tilewright.machine.build import machine_hash
from tilewright.machine.check import warnings_of
from tilewright.records import ImportedField, MachineImportRecord, check_target, write_file

WHAT = "machine file"  # for errors about the target


def import_(
    topology: Annotated[
        Path, typer.Argument(metavar="TOPOLOGY", help="A topology of KernBench: YAML or JSON.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write into FILE.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace FILE if there is one already.")
    ] = False,
    json: JsonOption = False,
) -> Outcome:
    """Turn a topology of KernBench into a machine file.

    The machine file says what differs from ahbm, each value beside the key of
    the topology that it comes from. Without -o it goes to standard output:

    \b
      tilewright machine import topology.yaml -o mine.yaml
      tilewright machine check mine.yaml

    Keys that have no counterpart are refused, all at once, with line, path and
    what to do. Keys without effect are listed. Exit status 0: the machine was
    built and its file is complete; 2: nothing was written.
    """
    _check_output(topology, output, force=force)
    with all_problems(str(topology)):
        imported = resolve_topology(topology)
    if output is not None:
        write_file(output, imported.text.encode(), WHAT)
    elif not json:
        print(imported.text, end="")  # as it is: a view would be wrapped
        _note_rest(imported)
        raise typer.Exit
    record = _record(imported, output)
    return Outcome(record, _view(record))


def _check_output(topology: Path, output: Path | None, *, force: bool) -> None:
    """Refuse a target before any work is done."""
    if output is None:
        if force:
            found, fix = "--force without -o", "name the file with -o, or leave --force out"
            raise UsageError("command line", found, "a file to replace", fix)
        return
    check_target(output, WHAT)
    if not os.path.lexists(output):
        return
    if os.path.exists(topology) and os.path.exists(output) and os.path.samefile(topology, output):
        found, fix = "the topology itself", "choose another name"
        raise UsageError(f"-o {output}", found, "a file beside the topology", fix)
    if not force:
        found, fix = "a file that exists", "choose another name, or add --force to replace it"
        raise UsageError(f"-o {output}", found, "a new file", fix)


def _record(imported: Topology, output: Path | None) -> MachineImportRecord:
    machine = imported.machine
    return MachineImportRecord.of(
        imported,
        file=None if output is None else str(output),
        machine=machine.spec.name,
        machine_hash=machine_hash(machine.spec),
        num_pes=machine.grid.num_pes,
        fields=tuple(ImportedField.of(one, key=".".join(one.key)) for one in imported.settings),
        without_effect=dict(imported.without_effect),
        warnings=warnings_of(machine),
    )


def _note_rest(imported: Topology) -> None:
    """Tell beside the file what it does not say: keys without effect are comments in it."""
    if imported.without_effect:
        note(f"{len(imported.without_effect)} keys have no effect: see the end of the file")
    for warning in warnings_of(imported.machine):
        note(f"warning: {warning}")


def _view(record: MachineImportRecord) -> Text:
    lines = [
        f"{record.source}: a machine of {record.num_pes} PEs, written to {record.file}",
        f"{len(record.fields)} values differ from ahbm",
    ]
    defaults = [one.key for one in record.fields if one.is_default]
    lines += [f"absent, KernBench's default holds: {key}" for key in defaults]
    lines += [f"without effect: {key} ({why})" for key, why in record.without_effect.items()]
    lines += [f"warning: {warning}" for warning in record.warnings] or ["no warnings"]
    return Text("\n".join(lines))
