"""Machines that come with the package, one YAML file each; every file explains itself."""

from functools import cache
from importlib.resources import files

__all__ = ("list_presets", "preset_text")

ENDING = ".yaml"


@cache
def list_presets() -> tuple[str, ...]:
    """The names of all presets, sorted."""
    names = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING)))


def preset_text(name: str) -> str:
    """The text of one of `list_presets`."""
    return files(__name__).joinpath(name + ENDING).read_text(encoding="utf-8")
