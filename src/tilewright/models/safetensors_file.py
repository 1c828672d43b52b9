"""Safetensors files: one of them, or the parts that an index names, mapped into memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelFileError
from tilewright.models.library import load_library

__all__ = ("SafetensorsFile", "open_safetensors", "read_json")

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
DTYPES = ("BF16", "F16", "F32", "F64")

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class SafetensorsFile:
    """Tensors by name, each with the open file that holds it."""

    path: Path
    _holders: Mapping[str, Any]

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._holders)

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor as float32, if it has the shape that the model asks for."""
        where = f"{self.path}, tensor {name!r}"
        fix = "fetch the file again, or choose another model"
        if name not in self._holders:
            raise ModelFileError(where, "no such tensor", f"one of shape {list(shape)}", fix)
        stored = self._holders[name].get_slice(name)
        if tuple(stored.get_shape()) != shape:
            expected = f"{list(shape)}, as the configuration says"
            raise ModelFileError(where, f"shape {list(stored.get_shape())}", expected, fix)
        if stored.get_dtype() not in DTYPES:
            expected = f"one of {', '.join(DTYPES)}"
            raise ModelFileError(where, f"type {stored.get_dtype()}", expected, "convert the file")
        values: Floats = self._holders[name].get_tensor(name).astype(np.float32)
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
    handle = _opened(path)
    return SafetensorsFile(path, MappingProxyType(dict.fromkeys(handle.keys(), handle)))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file beside the weights."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelFileError(str(path), reason, "a file that opens", "correct the path") from error
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
    handles: dict[str, Any] = {}
    for part in sorted(set(places.values())):
        if Path(part).name != part or part.startswith("."):
            raise ModelFileError(str(index), f"the part {part!r}", "a file beside it", "correct it")
        handles[part] = _opened(folder / part)
    for name, part in places.items():
        if name not in handles[part].keys():  # noqa: SIM118  # a handle is no mapping
            expected = f"{name!r}, as the index says"
            fix = "fetch the files again"
            raise ModelFileError(str(folder / part), "no such tensor", expected, fix)
    return MappingProxyType({name: handles[part] for name, part in places.items()})


def _opened(path: Path) -> Any:
    library = load_library("safetensors", where=str(path))
    if path.is_dir():
        raise ModelFileError(str(path), "a directory", "a safetensors file", "name a file in it")
    try:
        return library.safe_open(path, framework="numpy")
    except OSError as error:
        found = error.strerror or str(error)
        raise ModelFileError(str(path), found, "a file that opens", "correct the path") from error
    except library.SafetensorError as error:
        expected, fix = "a whole safetensors file", "fetch the file again"
        raise ModelFileError(str(path), f"a damaged file ({error})", expected, fix) from error
