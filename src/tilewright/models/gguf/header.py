"""The header of a GGUF file, read with every count checked against the bytes that are there."""

import struct
from typing import TypeAlias

from tilewright.errors import ModelFileError
from tilewright.models.weight_file import WeightFile

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
LONGEST_NAME = 65_535
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
            key = self.text("a metadata key", longest=LONGEST_NAME)
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
