"""Arguments of a launch that are no plain arrays or numbers."""

from dataclasses import dataclass

__all__ = ("Addresses", "Described", "Named")


@dataclass(frozen=True, slots=True)
class Addresses:
    """An int64 array with the addresses of other arguments."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor descriptor over another argument, made by the host."""

    name: str
    block_shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Something of the kernel's own file: a jitted function as a constexpr."""

    name: str
