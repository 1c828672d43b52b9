"""Writes a record whole or not at all."""

import os
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.records.canonical import canonical_json
from tilewright.records.document import Document

__all__ = ("check_target", "replace_file", "write_record")


def write_record(path: Path, record: Document) -> None:
    """Write the canonical JSON of a record; an older file is replaced in one step."""
    content = canonical_json(_checked_again(record)) + b"\n"
    try:
        replace_file(path, content)
    except OSError as error:
        found = f"a target that cannot be written ({error.strerror})"
        fix = "choose another path or change its permissions"
        raise RecordError(str(path), found, "a writable path", fix) from error


def _checked_again(record: Document) -> Document:
    # a mapping inside a frozen model can still be changed, so its sums may no longer hold
    try:
        return type(record).model_validate(record.model_dump())
    except ValidationError as error:
        found = str(error.errors()[0]["msg"])
        fix = "build a new record instead of changing one"
        raise RecordError(type(record).__name__, found, "a valid record", fix) from error


def check_target(path: Path, what: str) -> None:
    """Refuse, before any work is done, a path that ``what`` cannot be written to."""
    where, fix = str(path), "choose another path or change its permissions"
    if path.is_dir():
        raise RecordError(where, "a directory", f"a file to write the {what} into", fix)
    if not path.parent.is_dir():
        found = f"no directory {str(path.parent)!r}"
        raise RecordError(where, found, f"a directory to write the {what} into", "make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        found = f"a directory {str(path.parent)!r} that cannot be written"
        raise RecordError(where, found, "a writable directory", fix)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; OSError if that cannot be."""
    # in the same directory: os.replace is atomic only inside one file system
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
