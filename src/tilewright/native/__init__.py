"""The compiled module and its loader; without a compiler there is none, and Python does all."""

from importlib import import_module
from typing import Any

from tilewright.errors import EngineError

__all__ = ("native_built", "native_core")

_core: Any
try:
    _core = import_module("tilewright.native._core")
except ModuleNotFoundError:
    _core = None
except ImportError as error:
    raise EngineError(
        "engine",
        f"a compiled core that does not load ({error})",
        "one that was built for this Python",
        "reinstall tilewright",
    ) from error


def native_built() -> bool:
    """Return whether this installation has the compiled module."""
    return _core is not None


def native_core() -> Any:
    """Return the compiled module; None if there is none."""
    return _core
