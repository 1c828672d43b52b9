"""Reads and writes records: canonical JSON, whole or not at all, strict and up to a limit."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tilewright.canonical import canonical_json
from tilewright.errors import RecordError, TilewrightError
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


MAX_TEXT_BYTES = 2**24
"""Limit of text that people write: programs, flows, prompts, configurations."""


def read_file(
    path: Path, what: str, error: type[TilewrightError], *, most_bytes: int = MAX_TEXT_BYTES
) -> bytes:
    """Return the bytes of a file; one that cannot be read, or is larger, is an ``error``.

    A pipe that nobody has opened for writing is an empty file: waiting for a writer could last for
    ever.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            os.set_blocking(descriptor, True)
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as problem:  # ValueError: a zero byte in the path
        found = f"a file that cannot be read ({getattr(problem, 'strerror', None) or problem})"
        fix = "check the path and its permissions"
        raise error(str(path), found, what, fix) from problem
    if len(content) > most_bytes:
        found, fix = f"more than {most_bytes} bytes", f"name a file that is {what}"
        raise error(str(path), found, f"{what} of at most {most_bytes} bytes", fix)
    return content


def read_text_file(path: Path, what: str, error: type[TilewrightError]) -> str:
    """Return the text of a file in UTF-8, read as `read_file` does."""
    content = read_file(path, what, error)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        found = f"the byte 0x{content[problem.start]:02x}, which is no UTF-8"
        where, fix = f"{path} line {line}", "save the file as UTF-8"
        raise error(where, found, "text in UTF-8", fix) from problem


MAX_RECORD_BYTES = 2**28

RecordT = TypeVar("RecordT", bound=Document)


def read_record(path: Path, record_type: type[RecordT]) -> RecordT:
    """Read a record of a known type. A missing, cut or foreign file is a RecordError."""
    content = read_file(path, "a record file", RecordError, most_bytes=MAX_RECORD_BYTES)
    try:
        return record_type.model_validate_json(content)
    except ValidationError as error:
        raise _refusal(path, record_type, error) from error


@contextmanager
def told_if_contradictory(*paths: Path) -> Iterator[None]:
    """Tell as a RecordError that figures which were read cannot all be true.

    Of a record that a run wrote they are; of one that was changed a share may come out negative or
    a division by zero, whatever is checked when it is read.
    """
    try:
        yield
    except (ValidationError, ArithmeticError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        found = f"figures that contradict each other ({reason})"
        expected, fix = "a record as a run wrote it", "run the program again with --record"
        raise RecordError(", ".join(map(str, paths)), found, expected, fix) from error


def _refusal(path: Path, record_type: type[Document], error: ValidationError) -> RecordError:
    problems: list[Any] = list(error.errors())
    first = next((each for each in problems if each["loc"] == ("kind",)), problems[0])
    if first["type"] == "json_invalid":
        found = f"no complete JSON document ({first['ctx']['error']})"
        return RecordError(str(path), found, "one JSON document", "write the record again")
    place = ".".join(str(part) for part in first["loc"]) or "the document"
    expected = f"a {record_type.__name__}"
    fix = "choose a file that this version of tilewright wrote"
    value, found = first["input"], first["msg"]
    if isinstance(value, str | int | float):
        found = f"{value!r} ({found})"
    return RecordError(f"{path}: {place}", found, expected, fix)
