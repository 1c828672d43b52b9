"""Safetensors files: one of them, or the parts that an index names; tensors are read on demand."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelFileError
from tilewright.models.safetensors.header import read_header
from tilewright.models.weight_file import WeightFile, open_weight_file
from tilewright.records import read_text_file

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
DTYPES: Mapping[str, Any] = MappingProxyType(
    {"BF16": ml_dtypes.bfloat16, "F16": "<f2", "F32": "<f4", "F64": "<f8"}
)

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Where a tensor lies, and how its elements are kept."""

    file: WeightFile
    dtype: str
    shape: tuple[int, ...]
    offset: int  # in the file
    num_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class SafetensorsFile:
    """Tensors by name, each with the file that holds it."""

    path: Path
    _tensors: Mapping[str, _Tensor]

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._tensors)

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor as float32, if it has the shape that the model asks for."""
        where = f"{self.path}, tensor {name!r}"
        fix = "fetch the file again, or choose another model"
        if name not in self._tensors:
            raise ModelFileError(where, "no such tensor", f"one of shape {list(shape)}", fix)
        tensor = self._tensors[name]
        if tensor.shape != shape:
            expected = f"{list(shape)}, as the configuration says"
            raise ModelFileError(where, f"shape {list(tensor.shape)}", expected, fix)
        if tensor.dtype not in DTYPES:
            expected = f"one of {', '.join(DTYPES)}"
            raise ModelFileError(where, f"type {tensor.dtype}", expected, "convert the file")
        stored = tensor.file.read(tensor.offset, tensor.num_bytes)
        with np.errstate(all="ignore"):  # what is not finite is refused below
            values: Floats = np.frombuffer(stored, DTYPES[tensor.dtype]).reshape(shape).astype("f4")
        if not np.isfinite(values).all():
            found = "infinite values or NaN"
            raise ModelFileError(where, found, "finite numbers", "fetch the file again")
        return values


def open_safetensors(path: str | Path) -> SafetensorsFile:
    """A file, or a folder with ``model.safetensors`` or an index of parts."""
    path = Path(path)
    if path.is_dir():
        if (path / INDEX).is_file():
            return SafetensorsFile(path, _indexed(path))
        path = path / SINGLE
    return SafetensorsFile(path, MappingProxyType(_opened(path)))


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


def _indexed(folder: Path) -> Mapping[str, Any]:
    """Tensors of all parts. A part is a plain name: an index may not lead out of its folder."""
    index = folder / INDEX
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(part, str) for part in places.values()):
        raise ModelFileError(str(index), "no weight_map", "a part for each tensor", "correct it")
    found: dict[str, dict[str, _Tensor]] = {}
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


def _opened(path: Path) -> dict[str, _Tensor]:
    """Return the tensors of a file whose header holds together."""
    file = open_weight_file(path, "a safetensors file")
    return {
        name: _Tensor(file, entry.dtype, entry.shape, entry.offset, entry.num_bytes)
        for name, entry in read_header(file).items()
    }
