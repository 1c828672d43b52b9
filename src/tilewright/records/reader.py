"""Reads a record strictly."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.records.document import Document

__all__ = ("read_record",)

RecordT = TypeVar("RecordT", bound=Document)


def read_record(path: Path, record_type: type[RecordT]) -> RecordT:
    """Read a record of a known type. A missing, cut or foreign file is a RecordError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror})"
        fix = "check the path and its permissions"
        raise RecordError(str(path), found, "a record file", fix) from error
    try:
        return record_type.model_validate_json(content)
    except ValidationError as error:
        raise _refusal(path, record_type, error) from error


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
