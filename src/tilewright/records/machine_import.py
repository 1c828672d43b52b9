"""What ``tilewright machine import`` made of a foreign description."""

from typing import Literal

from pydantic import PositiveInt

from tilewright.records.document import Document, Sha256


class ImportedField(Document):
    """A field of the machine that differs from the base, and the foreign key that sets it."""

    field: str
    value: int | str | tuple[int, ...]  # in the field's unit
    key: str
    is_default: bool  # whether the key is absent and the foreign system's default holds


class MachineImportRecord(Document):
    """A machine made from a foreign description; one that cannot be gets a `FailureRecord`."""

    kind: Literal["machine_import"] = "machine_import"
    schema_version: Literal[1] = 1
    source: str  # the foreign file, as it was named
    file: str | None  # the machine file that was written
    machine: str
    machine_hash: Sha256
    num_pes: PositiveInt
    fields: tuple[ImportedField, ...]
    without_effect: dict[str, str]  # reason by foreign key
    warnings: tuple[str, ...]
    text: str  # of the machine file
