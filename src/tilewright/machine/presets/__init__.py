"""Machines that come with the package, one YAML file each; every file explains itself."""

from functools import cache
from importlib.resources import files
from itertools import takewhile

__all__ = ("list_presets", "preset_summary", "preset_text")

ENDING = ".yaml"


@cache
def list_presets() -> tuple[str, ...]:
    """The names of all presets, sorted."""
    names = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING)))


def preset_text(name: str) -> str:
    """The text of one of `list_presets`."""
    return files(__name__).joinpath(name + ENDING).read_text(encoding="utf-8")


def preset_summary(name: str) -> str:
    """Return what a preset is for: the first sentence of its file.

    >>> preset_summary("ahbm")
    'the default machine'
    """
    lines = preset_text(name).splitlines()
    comment = " ".join(line.strip("# ") for line in takewhile(lambda line: line[:1] == "#", lines))
    return comment.removeprefix(f"{name}: ").partition(". ")[0].rstrip(".")
