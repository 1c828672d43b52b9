"""Libraries of the extra ``models``: imported when a file asks for them, and named when missing."""

from importlib import import_module
from typing import Any

from tilewright.errors import MissingExtraError


def load_library(name: str, *, where: str) -> Any:
    """A library by name. ``where`` says what needs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(where, name, "models") from error
