"""Safetensors files: one of them, or the parts that an index names; tensors are read on demand.

A header is checked by the rules of the format without mapping the file. The library of the format
maps it; a file that shrinks meanwhile would end the process.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.errors import ModelFileError
from tilewright.models.weight_file import (
    Floats,
    StoredTensor,
    TensorFile,
    WeightFile,
    open_weight_file,
)
from tilewright.records import read_text_file

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

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
DTYPES: Mapping[str, Any] = MappingProxyType(
    {"BF16": ml_dtypes.bfloat16, "F16": "<f2", "F32": "<f4", "F64": "<f8"}
)


def read_header(file: WeightFile) -> Mapping[str, StoredTensor]:
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


def _entry(file: WeightFile, start: int, name: str, entry: Any) -> StoredTensor:
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
    return StoredTensor(file, dtype, tuple(shape), start + first, num_bits // 8)


def _are_sizes(values: object) -> bool:
    """Return whether a value is a list of whole numbers, none of them negative."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 2**64 for value in values
    )


def _damaged(file: WeightFile, found: str) -> ModelFileError:
    expected, fix = "a whole safetensors file", "fetch the file again"
    return ModelFileError(str(file.path), f"a damaged file ({found})", expected, fix)


@dataclass(frozen=True, slots=True, eq=False)
class SafetensorsFile(TensorFile):
    """One file, or several that an index joins."""

    said_by = "as the configuration says"

    def values_of(self, where: str, name: str) -> Floats:
        tensor = self.tensors[name]
        if tensor.kind not in DTYPES:
            expected = f"one of {', '.join(DTYPES)}"
            raise ModelFileError(where, f"type {tensor.kind}", expected, "convert the file")
        return np.frombuffer(tensor.read(), DTYPES[tensor.kind]).astype("f4")


def open_safetensors(path: str | Path) -> SafetensorsFile:
    """A file, or a folder with ``model.safetensors`` or an index of parts."""
    path = Path(path)
    if path.is_dir():
        if (path / INDEX).is_file():
            return SafetensorsFile(path, _indexed(path))
        path = path / SINGLE
    return SafetensorsFile(path, _opened(path))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file beside the weights."""
    try:
        found = json.loads(read_text_file(path, "a JSON file", ModelFileError))
    except (ValueError, RecursionError) as error:
        fix = "fetch the file again"
        raise ModelFileError(str(path), f"no JSON ({error})", "JSON text", fix) from error
    if not isinstance(found, dict):
        raise ModelFileError(str(path), f"a JSON {type(found).__name__}", "an object", "correct it")
    return found


def _indexed(folder: Path) -> Mapping[str, StoredTensor]:
    """Tensors of all parts. A part is a plain name: an index may not lead out of its folder."""
    index = folder / INDEX
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(part, str) for part in places.values()):
        raise ModelFileError(str(index), "no weight_map", "a part for each tensor", "correct it")
    found: dict[str, Mapping[str, StoredTensor]] = {}
    for part in sorted(set(places.values())):
        if Path(part).name != part or part.startswith("."):
            raise ModelFileError(str(index), f"the part {part!r}", "a file beside it", "correct it")
        found[part] = _opened(folder / part)
    for name, part in places.items():
        if name not in found[part]:
            expected = f"{name!r}, as the index says"
            fix = "fetch the files again"
            raise ModelFileError(str(folder / part), "no such tensor", expected, fix)
    return MappingProxyType({name: found[part][name] for name, part in places.items()})


def _opened(path: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file whose header holds together."""
    return read_header(open_weight_file(path, "a safetensors file"))
