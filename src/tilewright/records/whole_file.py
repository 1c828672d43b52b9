"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from tilewright.errors import RecordError

__all__ = ("WholeFile", "check_target", "whole_file", "write_file")

FIX = "choose another path, change its permissions or free space there"


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file under way; what cannot be written is a RecordError where it happens."""

    path: Path
    what: str  # for people
    unfinished: BinaryIO

    def write(self, content: bytes) -> int:
        with _told(self.path, self.what):
            return self.unfinished.write(content)


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[WholeFile]:
    """A file that appears under its name when the block ends; after an error nothing is left.

    An older one is replaced in one step.
    """
    with _told(path, what):
        # in the same directory: os.replace is atomic only inside one file system
        unfinished = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
        file = unfinished.open("xb")
    try:
        yield WholeFile(path, what, file)
        with _told(path, what):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            unfinished.replace(path)
    except BaseException:
        with suppress(OSError):  # of what is still in its buffer
            file.close()
        with suppress(OSError):
            unfinished.unlink()
        raise


def write_file(path: Path, content: bytes, what: str) -> None:
    """Write it whole or not at all; an older file is replaced in one step."""
    with whole_file(path, what) as file:
        file.write(content)


def check_target(path: Path, what: str) -> None:
    """Refuse, before any work is done, a path that ``what`` cannot be written to."""
    where = str(path)
    if path.is_dir():
        raise RecordError(where, "a directory", f"a file to write the {what} into", FIX)
    if not path.parent.is_dir():
        found = f"no directory {str(path.parent)!r}"
        raise RecordError(where, found, f"a directory to write the {what} into", "make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        found = f"a directory {str(path.parent)!r} that cannot be written"
        raise RecordError(where, found, "a writable directory", FIX)


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: no name, or a zero byte in it
        found = f"a target that cannot be written ({getattr(error, 'strerror', None) or error})"
        raise RecordError(str(path), found, f"a writable path for the {what}", FIX) from error
