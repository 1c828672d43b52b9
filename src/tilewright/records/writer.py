"""Writes a record whole or not at all."""

from pathlib import Path

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.records.canonical import canonical_json
from tilewright.records.document import Document
from tilewright.records.whole_file import write_file


def write_record(path: Path, record: Document) -> None:
    """Write the canonical JSON of a record; an older file is replaced in one step."""
    write_file(path, canonical_json(_checked_again(record)) + b"\n", "record")


def _checked_again(record: Document) -> Document:
    # a mapping inside a frozen model can still be changed, so its sums may no longer hold
    try:
        return type(record).model_validate(record.model_dump())
    except ValidationError as error:
        found = str(error.errors()[0]["msg"])
        fix = "build a new record instead of changing one"
        raise RecordError(type(record).__name__, found, "a valid record", fix) from error
