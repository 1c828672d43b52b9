"""Everything that can be known to be wrong with a machine file, up to building the machine."""

from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import SpecError
from tilewright.machine.build import Machine, build_machine, machine_hash
from tilewright.machine.check import warnings_of
from tilewright.machine.document import MachineDocument
from tilewright.machine.explain import located
from tilewright.machine.parse import DEFAULT_PRESET, load_machine_document, spec_of
from tilewright.machine.schema import is_path
from tilewright.machine.unused import unused_keys
from tilewright.records import MachineCheckRecord


def load_machine(source: str | Path = DEFAULT_PRESET, overrides: Sequence[str] = ()) -> Machine:
    """Build the machine of a preset or a file, with some of its values changed.

    An override is ``path=value``, as after ``--set``. What is wrong with a file is a SpecError
    with file, line and path.

    >>> load_machine("ahbm-small", ["cube.noc.bytes_per_us=512 GB/s"]).grid.num_pes
    16
    """
    return machine_of_document(load_machine_document(source, overrides))


def check_machine_file(source: str | Path, overrides: Sequence[str] = ()) -> MachineCheckRecord:
    """Return the verdict on a machine that runs; raise SpecError with the line for any other."""
    document = load_machine_document(source, overrides)
    machine = machine_of_document(document)
    spec = machine.spec
    return MachineCheckRecord(
        source=str(source),
        overrides=tuple(overrides),
        machine=spec.name,
        machine_hash=machine_hash(spec),
        num_pes=spec.sip.count * spec.sip.num_cubes * spec.cube.pes,
        warnings=(*unused_keys(document, spec), *warnings_of(machine)),
    )


def machine_of_document(document: MachineDocument) -> Machine:
    """Build the machine of a document; raise SpecError with file, line and path if it cannot be."""
    spec = spec_of(document)
    try:
        return build_machine(spec)
    except SpecError as error:
        raise _with_place(document, error) from error


def _with_place(document: MachineDocument, error: SpecError) -> SpecError:
    """An error of the builder, which knows paths of fields but no files."""
    fact = error.found, error.expected, error.fix
    if is_path(error.where):
        return located(document, error.where.split("."), fact)[1]
    return SpecError(f"{document.source}: {error.where}", *fact)
