"""GGUF files: metadata, and tensors that are dequantised when they are read.

The container is read here and not by the ``gguf`` library, which trusts every count in a file: here
every count is checked against the bytes that are there. The values of quantised types are the
library's.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelFileError
from tilewright.models.model import load_library
from tilewright.models.weight_file import (
    Entries,
    Floats,
    StoredTensor,
    TensorFile,
    WeightFile,
    open_weight_file,
)

Scalar: TypeAlias = bool | int | float | str
MetadataValue: TypeAlias = Scalar | list[Scalar]
Metadata: TypeAlias = dict[str, MetadataValue]

SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # type number: struct format
STRING, ARRAY = 8, 9
LONGEST_KEY = 65_535
PIECE_BYTES = 2**20

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MOST_AXES = 4
LEAST_PAIR_BYTES, LEAST_TENSOR_BYTES = 13, 32
LONGEST_NAME = 64  # bytes, by the format's definition
PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


class HeaderReader:
    """A place in the header that moves on with each value; the file is read in large pieces."""

    def __init__(self, file: WeightFile) -> None:
        self.where = str(file.path)
        self.offset = 0
        self._file = file
        self._piece, self._piece_start = b"", 0

    @property
    def remaining(self) -> int:
        return self._file.num_bytes - self.offset

    def fail(self, found: str, expected: str, fix: str = "fetch the file again") -> ModelFileError:
        return ModelFileError(f"{self.where}, byte {self.offset}", found, expected, fix)

    def take(self, num_bytes: int, what: str) -> memoryview:
        if num_bytes > self.remaining:
            found = f"{what} of {num_bytes} bytes where {self.remaining} are left"
            raise self.fail(found, "a file that is whole")
        start, self.offset = self.offset, self.offset + num_bytes
        if self.offset > self._piece_start + len(self._piece):
            size = min(max(num_bytes, PIECE_BYTES), self._file.num_bytes - start)
            self._piece, self._piece_start = self._file.read(start, size), start
        begin = start - self._piece_start
        return memoryview(self._piece)[begin : begin + num_bytes]

    def number(self, code: str, what: str) -> int:
        (value,) = struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}"), what))
        return int(value)

    def count(self, what: str, *, least_bytes: int) -> int:
        """How many things follow, each of ``least_bytes`` or more."""
        start = self.offset
        value = self.number("Q", what)
        if value * least_bytes > self.remaining:
            self.offset = start
            found = f"{value} {what} where {self.remaining} bytes are left"
            raise self.fail(found, "a number that fits")
        return value

    def text(self, what: str, *, longest: int | None = None) -> str:
        length = self.count(f"letters of {what}", least_bytes=1)
        if longest is not None and length > longest:
            raise self.fail(f"{what} of {length} bytes", f"at most {longest}")
        try:
            return str(self.take(length, what), "utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(f"{what} that is no UTF-8", "text") from error

    def metadata(self, num_pairs: int) -> Metadata:
        """Key-value pairs; a second one with the same key is refused."""
        found: Metadata = {}
        for _ in range(num_pairs):
            key = self.text("a metadata key", longest=LONGEST_KEY)
            if key in found:
                raise self.fail(f"a second {key!r}", "each key once")
            found[key] = self._value(key, self.number("I", f"the type of {key!r}"))
        return found

    def _value(self, key: str, kind: int) -> MetadataValue:
        if kind == STRING:
            return self.text(f"the value of {key!r}")
        if kind == ARRAY:
            return self._array(key)
        return self._scalars(key, kind, 1)[0]

    def _array(self, key: str) -> MetadataValue:
        kind = self.number("I", f"the element type of {key!r}")
        if kind == STRING:
            length = self.count(f"strings of {key!r}", least_bytes=8)
            name = f"a string of {key!r}"
            return [self.text(name) for _ in range(length)]
        if kind == ARRAY:
            raise self.fail(f"an array of arrays in {key!r}", "numbers or strings")
        size = struct.calcsize(f"<{self._format(key, kind)}")
        return self._scalars(key, kind, self.count(f"elements of {key!r}", least_bytes=size))

    def _scalars(self, key: str, kind: int, length: int) -> list[Scalar]:
        code = self._format(key, kind)
        data = self.take(length * struct.calcsize(f"<{code}"), f"the value of {key!r}")
        return list(struct.unpack(f"<{length}{code}", data))

    def _format(self, key: str, kind: int) -> str:
        if kind not in SCALARS:
            raise self.fail(f"type {kind} of {key!r}", "one of 0..12")
        return SCALARS[kind]


@dataclass(frozen=True, slots=True, eq=False)
class GgufFile(TensorFile):
    """A file that holds together; nothing is in memory but the header."""

    said_by = "as the metadata say"

    metadata: Mapping[str, Any]

    @property
    def entries(self) -> Entries:
        """The metadata, by type."""
        return Entries(self.path, "metadata", self.metadata)

    def raw(self, name: str) -> npt.NDArray[np.uint8]:
        """Return the bytes of a tensor as they are kept: [rows, bytes of a row]."""
        tensor = self.tensors[name]
        rows = math.prod(tensor.shape[:-1])
        return np.frombuffer(tensor.read(), dtype=np.uint8).reshape(rows, -1)

    def values_of(self, where: str, name: str) -> Floats:
        quants = load_library("gguf.quants", where=str(self.path))
        stored, kind = self.raw(name), self.tensors[name].kind
        if kind.name in PLAIN:
            plain: npt.NDArray[Any] = stored.view(PLAIN[kind.name])
            return plain.astype(np.float32)
        try:
            found: Floats = quants.dequantize(stored, kind)
        except NotImplementedError as error:
            expected = "a type that the library gguf dequantises"
            fix = "convert the file"
            raise ModelFileError(where, f"type {kind.name}", expected, fix) from error
        return found


def open_gguf(path: str | Path) -> GgufFile:
    """Read the header of a file. Whatever does not hold together is refused."""
    file = open_weight_file(Path(path), "a GGUF file")
    reader = HeaderReader(file)
    num_tensors, num_pairs = _start(reader)
    metadata = reader.metadata(num_pairs)
    infos = _tensor_infos(reader, num_tensors)
    tensors = _placed(file, reader, infos, _alignment(reader, metadata))
    return GgufFile(file.path, MappingProxyType(tensors), MappingProxyType(metadata))


def _start(reader: HeaderReader) -> tuple[int, int]:
    magic = bytes(reader.take(4, "a magic number"))
    if magic != MAGIC:
        reader.offset = 0
        raise reader.fail(f"{magic!r}", f"{MAGIC!r}, as a GGUF file begins", "name another file")
    version = reader.number("I", "a version")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        found = f"version {version}" if swapped not in VERSIONS else "big-endian numbers"
        raise reader.fail(found, "version 2 or 3, little-endian", "convert the file")
    num_tensors = reader.count("tensors", least_bytes=LEAST_TENSOR_BYTES)
    return num_tensors, reader.count("metadata entries", least_bytes=LEAST_PAIR_BYTES)


def _alignment(reader: HeaderReader, metadata: Metadata) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise reader.fail(f"general.alignment {alignment!r}", "a power of two")
    return alignment


def _tensor_infos(
    reader: HeaderReader, num_tensors: int
) -> dict[str, tuple[tuple[int, ...], int, int]]:
    """Shape, type number and offset of each tensor, by name."""
    found: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(num_tensors):
        name = reader.text("a tensor's name", longest=LONGEST_NAME)
        if name in found:
            raise reader.fail(f"a second tensor {name!r}", "each name once")
        num_axes = reader.number("I", f"the axes of {name!r}")
        if not 1 <= num_axes <= MOST_AXES:
            raise reader.fail(f"{num_axes} axes of {name!r}", f"1..{MOST_AXES}")
        axes = [reader.number("Q", f"a size of {name!r}") for _ in range(num_axes)]
        if min(axes) < 1:
            raise reader.fail(f"sizes {axes} of {name!r}", "1 or more each")
        kind = reader.number("I", f"the type of {name!r}")
        found[name] = tuple(reversed(axes)), kind, reader.number("Q", f"the place of {name!r}")
    return found


def _placed(
    file: WeightFile,
    reader: HeaderReader,
    infos: Mapping[str, tuple[tuple[int, ...], int, int]],
    alignment: int,
) -> dict[str, StoredTensor]:
    """Every tensor with its place in the file, all of it inside."""
    library = load_library("gguf", where=reader.where)
    sizes = {int(kind): size for kind, size in library.GGML_QUANT_SIZES.items()}
    start = -(-reader.offset // alignment) * alignment
    size = reader.offset + reader.remaining
    placed = {}
    for name, (shape, number, offset) in infos.items():
        if number not in sizes:
            raise reader.fail(f"type {number} of {name!r}", "a type of GGML", "update gguf")
        block, block_bytes = sizes[number]
        if shape[-1] % block or offset % alignment:
            found = f"{name!r}: rows of {shape[-1]} at {offset}"
            raise reader.fail(found, f"rows of whole blocks of {block}, aligned to {alignment}")
        num_bytes = math.prod(shape) // block * block_bytes
        if start + offset + num_bytes > size:
            found = f"{name!r} up to byte {start + offset + num_bytes} of a file of {size}"
            raise reader.fail(found, "a file that is whole")
        kind = library.GGMLQuantizationType(number)
        placed[name] = StoredTensor(file, kind, shape, start + offset, num_bytes)
    return placed
