"""The names of torch that flow files use for annotations and element types, without torch.

This stands in for torch only while a flow file runs, and only where torch is not installed.
"""

import importlib.util
import sys
from types import ModuleType
from typing import Never

from tilewright.attention.graph import DType
from tilewright.errors import MissingExtraError

_DTYPES = {
    "float32": DType.FLOAT32,
    "float": DType.FLOAT32,
    "float16": DType.FLOAT16,
    "half": DType.FLOAT16,
    "bfloat16": DType.BFLOAT16,
    "float8_e4m3fn": DType.FLOAT8_E4M3,
    "float8_e5m2": DType.FLOAT8_E5M2,
    "int32": DType.INT32,
    "int": DType.INT32,
    "int8": DType.INT8,
    "bool": DType.BOOL,
}


class Tensor:
    """For annotations. There are no tensors without torch."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        _missing("torch.Tensor(...)")


class device:  # noqa: N801  # the name that torch has
    """For annotations and for ``device=`` arguments, which flows may pass and nobody reads."""

    def __init__(self, *names: object) -> None:
        self.names = names


def torch_is_installed() -> bool:
    """Return whether torch itself can be imported, also while the stand-in has its name."""
    loaded = sys.modules.get("torch")
    if loaded is not None:
        return loaded.__spec__ is not None  # the stand-in has none
    return importlib.util.find_spec("torch") is not None


def build_torch_names() -> ModuleType:
    """Return a module called torch that has types and element types, and refuses all else."""
    module = ModuleType("torch", "Names of torch, without torch.")
    module.__dict__.update(_DTYPES, Tensor=Tensor, dtype=DType, device=device)
    module.__dict__["__getattr__"] = _refuse
    return module


def _refuse(name: str) -> Never:
    if name.startswith("__"):
        raise AttributeError(name)
    _missing(f"torch.{name}")


def _missing(name: str) -> Never:
    raise MissingExtraError(f"a flow file that needs {name}", "torch", "bench")
