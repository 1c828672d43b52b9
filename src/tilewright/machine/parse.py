"""Machine files to specs and machines: the only reader of machine files there is."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from tilewright.errors import CodeRefusedError, SpecError
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.file.document import (
    MachineDocument,
    document_of_text,
    load_document,
    override_document,
)
from tilewright.machine.file.explain import joined, located, spec_error
from tilewright.machine.file.schema import is_path
from tilewright.machine.file.yaml_text import Items, Place, Scalar, Value
from tilewright.machine.impl import family_of, resolve_impl
from tilewright.machine.spec import BlockSpec, MachineSpec
from tilewright.machine.spec.field import walk_sections

DEFAULT_PRESET = "ahbm"


def parse_machine(
    source: str | Path = DEFAULT_PRESET, overrides: Sequence[str] = ()
) -> MachineSpec:
    """The machine of a preset or of a file. Anything wrong is a SpecError with file, line, path.

    >>> parse_machine("ahbm", ["cube.hbm.pseudo_channels=16"]).cube.hbm.pseudo_channels
    16
    """
    return spec_of(load_machine_document(source, overrides))


def parse_machine_text(
    text: str, name: str = "machine.yaml", overrides: Sequence[str] = ()
) -> MachineSpec:
    """As `parse_machine`, from the text of a file that errors call ``name``."""
    return spec_of(override_document(document_of_text(text, name), overrides))


def load_machine_document(source: str | Path, overrides: Sequence[str] = ()) -> MachineDocument:
    """What files and overrides say, before it is checked."""
    return override_document(load_document(source), overrides)


def spec_of(document: MachineDocument) -> MachineSpec:
    """The checked machine of a document."""
    try:
        spec = MachineSpec.model_validate(_plain(document.root))
    except ValidationError as error:
        raise spec_error(document, error) from error
    problems = list(_impl_problems(document, spec))
    if problems:
        raise joined(problems)
    return spec


def _plain(value: Value) -> object:
    match value:
        case Scalar():
            return value.value
        case Items():
            return tuple(_plain(item) for item in value.values)  # a strict schema takes no list
        case _:
            return {key: _plain(entry.value) for key, entry in value.entries.items()}


def _impl_problems(
    document: MachineDocument, spec: MachineSpec
) -> Iterator[tuple[Place, SpecError]]:
    for path, section in walk_sections(spec):
        if not isinstance(section, BlockSpec):
            continue
        if section.impl is None:
            if section.parameters:
                fact = "parameters without impl", "a class that takes them", "name it with impl"
                yield located(document, (*path.split("."), "parameters"), fact)
            continue
        try:
            resolve_impl(section.impl, family_of(section), section.parameters)
        except (SpecError, CodeRefusedError) as error:
            fact = error.found, error.expected, error.fix
            yield located(document, (*path.split("."), "impl"), fact)


def load_machine(source: str | Path = DEFAULT_PRESET, overrides: Sequence[str] = ()) -> Machine:
    """Build the machine of a preset or a file, with some of its values changed.

    An override is ``path=value``, as after ``--set``. What is wrong with a file is a SpecError
    with file, line and path.

    >>> load_machine("ahbm-small", ["cube.noc.bytes_per_us=512 GB/s"]).grid.num_pes
    16
    """
    return machine_of_document(load_machine_document(source, overrides))


def machine_of_document(document: MachineDocument) -> Machine:
    """Build the machine of a document; raise SpecError with file, line and path if it cannot be."""
    spec = spec_of(document)
    try:
        return build_machine(spec)
    except SpecError as error:  # the builder knows paths of fields but no files
        fact = error.found, error.expected, error.fix
        if is_path(error.where):
            raise located(document, error.where.split("."), fact)[1] from error
        raise SpecError(f"{document.source}: {error.where}", *fact) from error
