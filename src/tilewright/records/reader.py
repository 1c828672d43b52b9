"""Reads a record strictly."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.records.document import Document
from tilewright.records.input_file import read_file

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
    first: Any = error.errors()[0]
    if first["type"] == "json_invalid":
        found = f"no complete JSON document ({first['ctx']['error']})"
        return RecordError(str(path), found, "one JSON document", "write the record again")
    place = ".".join(str(part) for part in first["loc"]) or "the document"
    expected = f"a {record_type.__name__}"
    fix = "choose a file that this version of tilewright wrote"
    return RecordError(f"{path}: {place}", _found(first), expected, fix)


def _found(problem: Any) -> str:
    """The value itself, if it is a short one, beside what the schema says."""
    value, text = problem["input"], problem["msg"]
    return f"{value!r} ({text})" if isinstance(value, str | int | float) else text
