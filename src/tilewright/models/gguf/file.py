"""GGUF files: metadata, and tensors that are dequantised when they are read.

The container is read here and not by the ``gguf`` library, which trusts every count in a file: here
every count is checked against the bytes that are there. The values of quantised types are the
library's.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelFileError
from tilewright.models.model import load_library
from tilewright.models.weight_file import WeightFile, open_weight_file

Scalar: TypeAlias = bool | int | float | str
MetadataValue: TypeAlias = Scalar | list[Scalar]
Metadata: TypeAlias = dict[str, MetadataValue]

SCALARS = {  # type number: struct format
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9
LONGEST_KEY = 65_535
PIECE_BYTES = 2**20


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

    def count(self, what: str, *, least_bytes: int, code: str = "Q") -> int:
        """How many things follow, each of ``least_bytes`` or more."""
        start = self.offset
        value = self.number(code, what)
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


MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MOST_AXES = 4
LONGEST_NAME = 64  # bytes, by the format's definition
LEAST_PAIR_BYTES, LEAST_TENSOR_BYTES = 13, 32
PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}
OTHER_FILE = "fetch the file again, or choose another model"

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where a tensor lies, and how its elements are kept."""

    name: str
    shape: tuple[int, ...]  # outermost axis first
    kind: Any  # of the library: a GGMLQuantizationType
    offset: int  # in the file
    num_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class GgufFile:
    """A file that holds together; nothing is in memory but the header."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    _file: WeightFile = field(repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.tensors)

    @property
    def where(self) -> str:
        return str(self.path)

    def raw(self, name: str) -> npt.NDArray[np.uint8]:
        """The bytes of a tensor as they are kept: [rows, bytes of a row]."""
        tensor = self.tensors[name]
        stored = np.frombuffer(self._file.read(tensor.offset, tensor.num_bytes), dtype=np.uint8)
        return stored.reshape(math.prod(tensor.shape[:-1]), -1)

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor as float32, if it has the shape that the model asks for."""
        where = f"{self.path}, tensor {name!r}"
        if name not in self.tensors:
            raise ModelFileError(where, "no such tensor", f"one of shape {list(shape)}", OTHER_FILE)
        tensor = self.tensors[name]
        if tensor.shape != shape:
            found = f"shape {list(tensor.shape)}"
            raise ModelFileError(where, found, f"{list(shape)}, as the metadata say", OTHER_FILE)
        with np.errstate(all="ignore"):  # what is not finite is refused below
            values = self._dequantised(where, tensor).reshape(shape)
        if not np.isfinite(values).all():
            found = "infinite values or NaN"
            raise ModelFileError(where, found, "finite numbers", "fetch the file again")
        return values

    def _dequantised(self, where: str, tensor: GgufTensor) -> Floats:
        quants = load_library("gguf.quants", where=str(self.path))
        stored = self.raw(tensor.name)
        kind = tensor.kind.name
        if kind in PLAIN:
            plain: npt.NDArray[Any] = stored.view(PLAIN[kind])
            return plain.astype(np.float32)
        try:
            found: Floats = quants.dequantize(stored, tensor.kind)
        except NotImplementedError as error:
            expected = "a type that the library gguf dequantises"
            raise ModelFileError(where, f"type {kind}", expected, "convert the file") from error
        return found


def open_gguf(path: str | Path) -> GgufFile:
    """Read the header of a file. Whatever does not hold together is refused."""
    file = open_weight_file(Path(path), "a GGUF file")
    reader = HeaderReader(file)
    num_tensors, num_pairs = _start(reader)
    metadata = reader.metadata(num_pairs)
    infos = _tensor_infos(reader, num_tensors)
    tensors = _placed(reader, infos, _alignment(reader, metadata))
    return GgufFile(file.path, MappingProxyType(metadata), MappingProxyType(tensors), file)


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
    reader: HeaderReader, infos: Mapping[str, tuple[tuple[int, ...], int, int]], alignment: int
) -> dict[str, GgufTensor]:
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
        placed[name] = GgufTensor(name, shape, kind, start + offset, num_bytes)
    return placed
