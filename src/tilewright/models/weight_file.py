"""Files of weights: ranges of their bytes, their tensors, and the entries that describe them.

Bytes are read when they are asked for. A file is not mapped into memory: one that shrinks while it
is mapped ends the process.
"""

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelFileError

OTHER_FILE = "fetch the file again, or choose another model"
MAX_COUNT = 2**31

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A plain file as it was when it was opened; one that has changed since is refused."""

    path: Path
    num_bytes: int
    state: tuple[int, ...]  # device, inode, size, time of the last change

    def read(self, offset: int, num_bytes: int) -> bytes:
        """Return bytes of the file, all of them or a ModelFileError."""
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                found = file.read(num_bytes)
                is_same = _state_of(os.fstat(file.fileno())) == self.state
        except OSError as error:
            raise _refusal(self.path, error) from error
        if not is_same or len(found) < num_bytes:
            fix = "load the model again when nobody writes the file"
            where = f"{self.path}, byte {offset}"
            raise ModelFileError(where, "a file that has changed", "one that stays as it is", fix)
        return found


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


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies, and how its elements are kept."""

    file: WeightFile
    kind: Any  # of its elements, as the format calls it
    shape: tuple[int, ...]  # outermost axis first
    offset: int  # in the file
    num_bytes: int

    def read(self) -> bytes:
        return self.file.read(self.offset, self.num_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class TensorFile(ABC):
    """Tensors by name; they are read one by one."""

    said_by: ClassVar[str]  # what says the shapes that are asked for

    path: Path
    tensors: Mapping[str, StoredTensor]

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.tensors)

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return a tensor as float32; refuse one that is missing or of another shape."""
        where = f"{self.path}, tensor {name!r}"
        if name not in self.tensors:
            raise ModelFileError(where, "no such tensor", f"one of shape {list(shape)}", OTHER_FILE)
        tensor = self.tensors[name]
        if tensor.shape != shape:
            found, expected = f"shape {list(tensor.shape)}", f"{list(shape)}, {self.said_by}"
            raise ModelFileError(where, found, expected, OTHER_FILE)
        with np.errstate(all="ignore"):  # what is not finite is refused below
            values = self.values_of(where, name).reshape(shape)
        if not np.isfinite(values).all():
            found = "infinite values or NaN"
            raise ModelFileError(where, found, "finite numbers", "fetch the file again")
        return values

    @abstractmethod
    def values_of(self, where: str, name: str) -> Floats:
        """Return the elements of a tensor, which errors call ``where``, in any shape."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Named values that describe a model, each asked for by its type; None counts as missing."""

    path: Path
    origin: str  # what they are together: "metadata"
    values: Mapping[str, Any]
    prefix: str = ""  # of all keys

    def count(
        self, key: str, default: int | None = None, *, least: int = 0, most: int = MAX_COUNT
    ) -> int:
        value = self.value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.fail(key, repr(value), f"a whole number in {least}..{most}")
        return value

    def number(self, key: str, default: float | None = None, *, is_positive: bool = False) -> float:
        value = self.value(key, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < 1e12 or (is_positive and not value):
            expected = "a positive number" if is_positive else "a number of 0 or more"
            raise self.fail(key, repr(value), expected)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.value(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, repr(value), "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.value(key, default)
        if not isinstance(value, str):
            raise self.fail(key, repr(value), "text")
        return value

    def part(self, key: str) -> "Entries":
        """Return an object inside; empty if it is missing or null."""
        values = self.values.get(key) or {}
        if not isinstance(values, dict):
            raise self.fail(key, repr(values), "an object")
        return Entries(self.path, self.origin, values, f"{self.prefix}{key}.")

    def below(self, prefix: str) -> "Entries":
        """Return the entries whose keys begin with a prefix."""
        found = {
            key.removeprefix(prefix): value
            for key, value in self.values.items()
            if key.startswith(prefix)
        }
        return Entries(self.path, self.origin, found, self.prefix + prefix)

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def check(self, key: str, *expected: object) -> None:
        """Refuse a variant: the key may be missing, or say what we take for granted."""
        if self.has(key) and self.values[key] not in expected:
            raise self.fail(key, repr(self.values[key]), " or ".join(map(repr, expected)))

    def value(self, key: str, default: object = None) -> Any:
        """Return a value of any type."""
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise self.fail(key, "no such entry", f"one in the {self.origin}")
        return value

    def fail(
        self, key: str, found: str, expected: str, fix: str = "choose another model"
    ) -> ModelFileError:
        return ModelFileError(f"{self.path}, {self.prefix}{key}", found, expected, fix)
