"""Ranges of bytes of a large file, read when they are asked for.

The file is not mapped into memory: one that shrinks while it is mapped ends the process.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import ModelFileError


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A plain file as it was when it was opened; one that has changed since is refused."""

    path: Path
    num_bytes: int
    state: tuple[int, ...]  # device, inode, size, time of the last change

    def read(self, offset: int, num_bytes: int) -> bytes:
        """Return bytes of the file, all of them or a ModelFileError."""
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(offset)
                found = bytearray()
                while len(found) < num_bytes:
                    piece = file.read(num_bytes - len(found))
                    if not piece:
                        break
                    found += piece
                is_same = _state_of(os.fstat(file.fileno())) == self.state
        except OSError as error:
            raise _refusal(self.path, error) from error
        if not is_same or len(found) < num_bytes:
            fix = "load the model again when nobody writes the file"
            where = f"{self.path}, byte {offset}"
            raise ModelFileError(where, "a file that has changed", "one that stays as it is", fix)
        return bytes(found)


def open_weight_file(path: Path, what: str) -> WeightFile:
    """Look at a file; a directory, a device, a pipe and an empty file are refused."""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):  # else it could have no end, or wait for one
            path.open("rb").close()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise _refusal(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise ModelFileError(str(path), "a directory", what, "name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(str(path), "a device or a pipe", what, "name a plain file")
    if not status.st_size:
        raise ModelFileError(str(path), "an empty file", what, "fetch the file again")
    return WeightFile(path, status.st_size, _state_of(status))


def _state_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _refusal(path: Path, error: OSError | ValueError) -> ModelFileError:
    found = getattr(error, "strerror", None) or str(error)
    return ModelFileError(str(path), found, "a file that opens", "correct the path")
