"""The header of a safetensors file, checked by the rules of the format without mapping the file.

The library of the format maps a file to read its header; one that shrinks meanwhile would end the
process.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tilewright.errors import ModelFileError
from tilewright.models.weight_file import WeightFile

BITS: Mapping[str, int] = MappingProxyType(
    {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
    | dict.fromkeys(("U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8)
    | dict.fromkeys(("I16", "U16", "F16", "BF16"), 16)
    | dict.fromkeys(("I32", "U32", "F32"), 32)
    | dict.fromkeys(("I64", "U64", "F64", "C64"), 64)
)
"""Bits of an element, by the name of its type."""

LENGTH_BYTES = 8  # of the header's length, in front of it
MAX_HEADER_BYTES = 100_000_000  # by the format's definition
METADATA = "__metadata__"
KEYS = {"dtype", "shape", "data_offsets"}


@dataclass(frozen=True, slots=True)
class HeaderEntry:
    """One tensor: how its elements are kept, and its bytes in the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int  # in the file
    num_bytes: int


def read_header(file: WeightFile) -> Mapping[str, HeaderEntry]:
    """Return the tensors of a file; together they fill it, without holes or overlaps.

    Whatever breaks a rule of the format is a ModelFileError.
    """
    document, start = _document(file)
    found = {
        name: _entry(file, start, name, entry)
        for name, entry in document.items()
        if name != METADATA
    }
    end = start
    for name, entry in sorted(found.items(), key=lambda item: (item[1].offset, item[1].num_bytes)):
        if entry.offset != end:
            raise _damaged(file, f"tensor {name!r} at byte {entry.offset} where {end} is next")
        end += entry.num_bytes
    if end != file.num_bytes:
        raise _damaged(file, f"tensors up to byte {end} of {file.num_bytes}")
    return MappingProxyType(found)


def _document(file: WeightFile) -> tuple[dict[str, Any], int]:
    """Return the header, and the byte behind it."""
    if file.num_bytes < LENGTH_BYTES:
        raise _damaged(file, f"{file.num_bytes} bytes, without a header")
    length = int.from_bytes(file.read(0, LENGTH_BYTES), "little")
    if length > min(MAX_HEADER_BYTES, file.num_bytes - LENGTH_BYTES):
        raise _damaged(file, f"a header of {length} bytes in a file of {file.num_bytes}")
    try:
        text = file.read(LENGTH_BYTES, length).decode()
        document = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:  # half of a surrogate pair is no text
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise _damaged(file, f"a header that is no JSON ({error})") from error
    if not isinstance(document, dict):
        raise _damaged(file, "a header that is no object")
    notes = document.get(METADATA)
    if notes is not None and not (
        isinstance(notes, dict) and all(isinstance(note, str) for note in notes.values())
    ):
        raise _damaged(file, f"{METADATA} that is no object of texts")
    return document, LENGTH_BYTES + length


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _entry(file: WeightFile, start: int, name: str, entry: Any) -> HeaderEntry:
    where = f"tensor {name!r}"
    if not isinstance(entry, dict) or not entry.keys() >= KEYS:
        raise _damaged(file, f"{where} without {', '.join(sorted(KEYS))}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise _damaged(file, f"{where} of the type {dtype!r}")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise _damaged(file, f"{where} of shape {shape!r} at {offsets!r}")
    num_bits, (first, end) = math.prod(shape) * BITS[dtype], offsets
    if num_bits % 8 or first + num_bits // 8 != end:
        raise _damaged(file, f"{where}: {num_bits // 8} bytes from {first} to {end}")
    return HeaderEntry(dtype, tuple(shape), start + first, num_bits // 8)


def _are_sizes(values: object) -> bool:
    """Return whether a value is a list of whole numbers, none of them negative."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 2**64 for value in values
    )


def _damaged(file: WeightFile, found: str) -> ModelFileError:
    expected, fix = "a whole safetensors file", "fetch the file again"
    return ModelFileError(str(file.path), f"a damaged file ({found})", expected, fix)
